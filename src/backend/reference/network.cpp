// SPDX-License-Identifier: Apache-2.0
// Spec A5-A8: linear layers, norm, labels, attention.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <new>
#include <type_traits>
#include <utility>

#include "backend/expected_views.h"
#include "backend/folded_matrix.h"
#include "backend/operation.h"
#include "backend/reference/attention.h"
#include "backend/reference/reference_backend.h"

namespace toto::reference {
namespace {

constexpr std::size_t kAlignment = 64;

template <typename T>
T silu(T x) {
  return x / (T{1} + std::exp(-x));
}

}  // namespace

template <typename T>
void* ReferenceBackend<T>::allocate(std::size_t bytes) {
  void* memory = ::operator new (std::max<std::size_t>(bytes, 1), std::align_val_t{kAlignment});
  std::memset(memory, 0, bytes);
  return memory;
}

template <typename T>
void ReferenceBackend<T>::release(void* memory) noexcept {
  ::operator delete (memory, std::align_val_t{kAlignment});
}

template <typename T>
void ReferenceBackend<T>::upload(std::span<const double> from, const View& to) const {
  expected::activations(*this, "upload: to", to, from.size());
  std::transform(from.begin(), from.end(), typed<T>(to),
                 [](double v) { return static_cast<T>(v); });
}

template <typename T>
void ReferenceBackend<T>::upload(std::span<const float> from, const View& to) const {
  expected::activations(*this, "upload: to", to, from.size());
  std::transform(from.begin(), from.end(), typed<T>(to), [](float v) { return static_cast<T>(v); });
}

template <typename T>
void ReferenceBackend<T>::download(const ConstView& from, std::span<double> to) const {
  expected::activations(*this, "download: from", from, to.size());
  const auto* source = typed<T>(from);
  std::copy(source, source + to.size(), to.begin());
}

template <typename T>
template <typename From>
std::unique_ptr<T[]> ReferenceBackend<T>::own(std::span<const From> values) {
  auto copy = std::make_unique_for_overwrite<T[]>(values.size());
  std::transform(values.begin(), values.end(), copy.get(),
                 [](From v) { return static_cast<T>(v); });
  return copy;
}

template <typename T>
Matrix ReferenceBackend<T>::keep_matrix(std::unique_ptr<T[]> weights, std::unique_ptr<T[]> bias,
                                        std::int32_t out, std::int32_t in) {
  weights_.push_back(std::make_unique<PlainWeights<T>>());
  weights_.back()->weights = std::move(weights);
  weights_.back()->bias = std::move(bias);
  return {weights_.back().get(), out, in};
}

template <typename T>
Matrix ReferenceBackend<T>::upload_matrix(std::unique_ptr<float[]> take, std::int32_t out,
                                          std::int32_t in, std::span<const float> bias,
                                          Epilogue /*use*/) {
  const std::size_t count = static_cast<std::size_t>(out) * static_cast<std::size_t>(in);
  std::unique_ptr<T[]> weights;
  if constexpr (std::is_same_v<T, float>) {
    weights = std::move(take);
  } else {
    weights = own(std::span<const float>(take.get(), count));
  }
  return keep_matrix(std::move(weights), bias.empty() ? nullptr : own(bias), out, in);
}

template <typename T>
Matrix ReferenceBackend<T>::upload_folded_matrix(const FoldedMatrix& matrix, Epilogue /*use*/,
                                                 bool /*exact*/) {
  const auto in = static_cast<std::size_t>(matrix.in);
  auto weights = std::make_unique_for_overwrite<T[]>(static_cast<std::size_t>(matrix.out) * in);
  for (std::int32_t row = 0; row < matrix.out; ++row) {
    matrix.fold(row, 0, std::span(weights.get() + static_cast<std::size_t>(row) * in, in));
  }
  auto bias = matrix.bias.empty() ? nullptr : own(std::span<const double>(matrix.bias));
  return keep_matrix(std::move(weights), std::move(bias), matrix.out, matrix.in);
}

template <typename T>
void ReferenceBackend<T>::linear(const Matrix& w, const ConstView& x, const View& y,
                                 Epilogue epilogue) const {
  const OperationSpan span(Operation::linear);
  expected::linear(*this, w, x, y, epilogue);
  const T* const inputs = typed<T>(x);
  T* const outputs = typed<T>(y);
  const auto& own = *static_cast<const PlainWeights<T>*>(w.weights);
  const T* const weights = own.weights.get();
  const T* const bias = own.bias.get();
  // Eight outputs at a time only so that eight sums are in flight; each sum runs over k in order.
  constexpr std::int32_t kTile = 8;
  const auto products = [&](const T* input, std::int32_t first, std::int32_t count, T* sums) {
    std::fill_n(sums, kTile, T{0});
    const T* rows_of[kTile];
    for (std::int32_t j = 0; j < kTile; ++j) {
      rows_of[j] = weights + std::int64_t{first + std::min(j, count - 1)} * w.in;
    }
    for (std::int32_t k = 0; k < w.in; ++k) {
      for (std::int32_t j = 0; j < kTile; ++j) sums[j] += rows_of[j][k] * input[k];
    }
    for (std::int32_t j = 0; j < count; ++j) {
      if (bias != nullptr) sums[j] += bias[first + j];
    }
  };
  const std::int32_t width = epilogue == Epilogue::gated ? w.out / 2 : w.out;
  for (std::int32_t row = 0; row < x.rows.count; ++row) {
    const T* input = inputs + std::int64_t{row} * w.in;
    T* output = outputs + std::int64_t{row} * width;
    for (std::int32_t first = 0; first < width; first += kTile) {
      const std::int32_t count = std::min(kTile, width - first);
      T sums[kTile];
      products(input, first, count, sums);
      T values[kTile];
      if (epilogue == Epilogue::gated) products(input, width + first, count, values);
      for (std::int32_t j = 0; j < count; ++j) {
        switch (epilogue) {
          case Epilogue::store:
            output[first + j] = sums[j];
            break;
          case Epilogue::residual:
            output[first + j] += sums[j];
            break;
          case Epilogue::gated:
            output[first + j] = silu(sums[j]) * values[j];
            break;
        }
      }
    }
  }
}

template <typename T>
void ReferenceBackend<T>::rms_norm(const ConstView& x, const ConstView& gain, const View& y) const {
  const OperationSpan span(Operation::rms_norm);
  expected::rms_norm(*this, x, gain, y);
  const std::int32_t dim = x.width;
  const T* in = typed<T>(x);
  const T* const gains = typed<T>(gain);
  T* out = typed<T>(y);
  for (std::int32_t row = 0; row < x.rows.count; ++row, in += dim, out += dim) {
    T squares = 0;
    for (std::int32_t i = 0; i < dim; ++i) squares += in[i] * in[i];
    const T root = std::sqrt(squares / static_cast<T>(dim) + static_cast<T>(1e-8));
    for (std::int32_t i = 0; i < dim; ++i) out[i] = in[i] / root * gains[i];
  }
}

template <typename T>
void ReferenceBackend<T>::set_labels(const Batch& batch, const ConstView& labels,
                                     const View& hidden) const {
  const OperationSpan span(Operation::set_labels);
  expected::set_labels(*this, batch, labels, hidden);
  const std::int32_t dim = hidden.width;
  const T* const both = typed<T>(labels);
  T* const rows = typed<T>(hidden);
  for (std::int32_t i = 0; i < batch.count; ++i) {
    const Block& b = batch.blocks[i];
    if (b.labels == 0) continue;
    for (std::int32_t lane = 0; lane < b.lanes(); ++lane) {
      const bool exogenous = lane % b.variates >= b.variates - b.exogenous;
      std::copy_n(both + (exogenous ? dim : 0), dim,
                  rows + std::int64_t{b.row + lane * b.tokens} * dim);
    }
  }
}

template <typename T>
void ReferenceBackend<T>::rotary_append(const Batch& batch, const Rotary& rotary, const View& qkv,
                                        const KvLayer& kv, std::int32_t heads) const {
  const OperationSpan span(Operation::rotary_append);
  const std::int32_t d = expected::rotary_append(*this, batch, rotary, qkv, kv, heads);
  T* const rows = typed<T>(qkv);
  T* const keys = typed<T>(kv.keys);
  T* const values = typed<T>(kv.values);
  const T* const cosines = typed<T>(rotary.cosine);
  const T* const sines = typed<T>(rotary.sine);
  const T* const factors = typed<T>(rotary.factor);
  const std::int32_t half = d / 2;
  for (std::int32_t i = 0; i < batch.count; ++i) {
    const Block& b = batch.blocks[i];
    for (std::int32_t lane = 0; lane < b.lanes(); ++lane) {
      for (std::int32_t token = 0; token < b.tokens; ++token) {
        T* row = rows + std::int64_t{b.row + lane * b.tokens + token} * 3 * heads * d;
        const std::int32_t t = b.position + token;
        const T* cosine = cosines + t * half;
        const T* sine = sines + t * half;
        const T* factor = factors + (t - b.centre + rotary.positions) * half;
        for (std::int32_t h = 0; h < heads; ++h) {
          T* query = row + h * d;
          T* key = row + (heads + h) * d;
          rotate(query, cosine, sine, factor, d, false);
          rotate(key, cosine, sine, factor, d, true);
          const std::int64_t at =
              b.suffix_at +
              ((std::int64_t{lane} * heads + h) * b.suffix_capacity + b.suffix + token) * d;
          std::copy_n(key, d, keys + at);
          std::copy_n(row + (2 * heads + h) * d, d, values + at);
        }
      }
    }
  }
}

template <typename T>
void ReferenceBackend<T>::time_attention(const Batch& batch, const ConstView& qkv,
                                         const KvLayer& kv, const View& out, std::int32_t heads,
                                         bool last_only) const {
  const OperationSpan span(Operation::time_attention);
  const std::int32_t d = expected::time_attention(*this, batch, qkv, kv, out, heads, last_only);
  const T* const rows = typed<T>(qkv);
  T* const attended = typed<T>(out);
  const T* const keys = typed<T>(kv.keys);
  const T* const values = typed<T>(kv.values);
  for (std::int32_t i = 0; i < batch.count; ++i) {
    const Block& b = batch.blocks[i];
    for (std::int32_t lane = 0; lane < b.lanes(); ++lane) {
      for (std::int32_t token = last_only ? b.tokens - 1 : 0; token < b.tokens; ++token) {
        const std::int64_t row = b.row + lane * b.tokens + token;
        const std::int64_t to = last_only ? b.lane + lane : row;
        for (std::int32_t h = 0; h < heads; ++h) {
          const T* query = rows + (row * 3 * heads + h) * d;
          const Visible<T> seen = visible<T>(b, keys, values, lane, h, token, heads, d);
          attend(
              query, attended + (to * heads + h) * d, seen.count(), d,
              [&](std::int32_t j) { return seen.key(j, d); },
              [&](std::int32_t j) { return seen.value(j, d); }, [](std::int32_t) { return true; });
        }
      }
    }
  }
}

template <typename T>
void ReferenceBackend<T>::variate_attention(const Batch& batch, const ConstView& qkv,
                                            const View& out, std::int32_t heads) const {
  const OperationSpan span(Operation::variate_attention);
  const std::int32_t d = expected::variate_attention(*this, batch, qkv, out, heads);
  const T* const rows = typed<T>(qkv);
  T* const attended = typed<T>(out);
  for (std::int32_t i = 0; i < batch.count; ++i) {
    const Block& b = batch.blocks[i];
    const std::int32_t* ids = batch.ids + b.ids;
    for (std::int32_t lane = 0; lane < b.lanes(); ++lane) {
      const std::int32_t first = lane - lane % b.variates;  // this trajectory's variate 0
      const std::int32_t variate = lane % b.variates;
      for (std::int32_t token = 0; token < b.tokens; ++token) {
        const auto row = [&](std::int32_t v) {
          return std::int64_t{b.row + (first + v) * b.tokens + token};
        };
        for (std::int32_t h = 0; h < heads; ++h) {
          const auto part = [&](std::int32_t v, std::int32_t which) {
            return rows + (row(v) * 3 * heads + which * heads + h) * d;
          };
          attend(
              part(variate, 0), attended + (row(variate) * heads + h) * d, b.variates, d,
              [&](std::int32_t j) { return part(j, 1); },
              [&](std::int32_t j) { return part(j, 2); },
              [&](std::int32_t j) {
                return ids[j * b.tokens + token] == ids[variate * b.tokens + token];
              });
        }
      }
    }
  }
}

template <typename T>
void ReferenceBackend<T>::gather_last(const Batch& batch, const ConstView& x, const View& y) const {
  const OperationSpan span(Operation::gather_last);
  expected::gather_last(*this, batch, x, y);
  const std::int32_t dim = x.width;
  const T* const rows = typed<T>(x);
  T* const last = typed<T>(y);
  for (std::int32_t i = 0; i < batch.count; ++i) {
    const Block& b = batch.blocks[i];
    for (std::int32_t lane = 0; lane < b.lanes(); ++lane) {
      const std::int64_t row = b.row + lane * b.tokens + b.tokens - 1;
      std::copy_n(rows + row * dim, y.width, last + std::int64_t{b.lane + lane} * y.width);
    }
  }
}

template class ReferenceBackend<float>;
template class ReferenceBackend<double>;

}  // namespace toto::reference

namespace toto {

std::unique_ptr<Backend> make_reference_backend_f32() {
  return std::make_unique<reference::ReferenceBackend<float>>();
}
std::unique_ptr<Backend> make_reference_backend_f64() {
  return std::make_unique<reference::ReferenceBackend<double>>();
}

}  // namespace toto
