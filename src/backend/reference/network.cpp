// SPDX-License-Identifier: Apache-2.0
// Spec A5-A8: linear layers, norm, labels, attention.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <new>
#include <type_traits>
#include <utility>

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
void ReferenceBackend<T>::upload(std::span<const double> from, void* to) const {
  std::transform(from.begin(), from.end(), static_cast<T*>(to),
                 [](double v) { return static_cast<T>(v); });
}

template <typename T>
void ReferenceBackend<T>::upload(std::span<const float> from, void* to) const {
  std::transform(from.begin(), from.end(), static_cast<T*>(to),
                 [](float v) { return static_cast<T>(v); });
}

template <typename T>
void ReferenceBackend<T>::download(const void* from, std::span<double> to) const {
  const auto* source = static_cast<const T*>(from);
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
Matrix ReferenceBackend<T>::upload_folded_matrix(std::span<const double> weights, std::int32_t out,
                                                 std::int32_t in, std::span<const double> bias,
                                                 Epilogue /*use*/, bool /*exact*/) {
  return keep_matrix(own(weights), bias.empty() ? nullptr : own(bias), out, in);
}

template <typename T>
void ReferenceBackend<T>::linear(const Matrix& w, const void* x, void* y, Rows rows,
                                 Epilogue epilogue) const {
  const OperationSpan span(Operation::linear);
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
  for (std::int32_t row = 0; row < rows.count; ++row) {
    const T* input = static_cast<const T*>(x) + std::int64_t{row} * w.in;
    T* output = static_cast<T*>(y) + std::int64_t{row} * width;
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
void ReferenceBackend<T>::rms_norm(const void* x, const void* scale, void* y, Rows rows,
                                   std::int32_t dim) const {
  const OperationSpan span(Operation::rms_norm);
  const auto* gain = static_cast<const T*>(scale);
  for (std::int32_t row = 0; row < rows.count; ++row) {
    const T* in = static_cast<const T*>(x) + std::int64_t{row} * dim;
    T* out = static_cast<T*>(y) + std::int64_t{row} * dim;
    T squares = 0;
    for (std::int32_t i = 0; i < dim; ++i) squares += in[i] * in[i];
    const T root = std::sqrt(squares / static_cast<T>(dim) + static_cast<T>(1e-8));
    for (std::int32_t i = 0; i < dim; ++i) out[i] = in[i] / root * gain[i];
  }
}

template <typename T>
void ReferenceBackend<T>::set_labels(const Batch& batch, const void* labels, void* hidden,
                                     std::int32_t dim) const {
  const OperationSpan span(Operation::set_labels);
  for (std::int32_t i = 0; i < batch.count; ++i) {
    const Block& b = batch.blocks[i];
    if (b.labels == 0) continue;
    for (std::int32_t lane = 0; lane < b.lanes(); ++lane) {
      const bool exogenous = lane % b.variates >= b.variates - b.exogenous;
      const T* label = static_cast<const T*>(labels) + (exogenous ? dim : 0);
      std::copy_n(label, dim,
                  static_cast<T*>(hidden) + std::int64_t{b.row + lane * b.tokens} * dim);
    }
  }
}

template <typename T>
void ReferenceBackend<T>::rotary_append(const Batch& batch, const Rotary& rotary, void* qkv,
                                        const KvLayer& kv, std::int32_t heads,
                                        std::int32_t d) const {
  const OperationSpan span(Operation::rotary_append);
  const std::int32_t half = d / 2;
  for (std::int32_t i = 0; i < batch.count; ++i) {
    const Block& b = batch.blocks[i];
    for (std::int32_t lane = 0; lane < b.lanes(); ++lane) {
      for (std::int32_t token = 0; token < b.tokens; ++token) {
        T* row =
            static_cast<T*>(qkv) + std::int64_t{b.row + lane * b.tokens + token} * 3 * heads * d;
        const std::int32_t t = b.position + token;
        const T* cosine = static_cast<const T*>(rotary.cosine) + t * half;
        const T* sine = static_cast<const T*>(rotary.sine) + t * half;
        const T* factor =
            static_cast<const T*>(rotary.factor) + (t - b.centre + rotary.positions) * half;
        for (std::int32_t h = 0; h < heads; ++h) {
          T* query = row + h * d;
          T* key = row + (heads + h) * d;
          rotate(query, cosine, sine, factor, d, false);
          rotate(key, cosine, sine, factor, d, true);
          const std::int64_t at =
              b.suffix_at +
              ((std::int64_t{lane} * heads + h) * b.suffix_capacity + b.suffix + token) * d;
          std::copy_n(key, d, static_cast<T*>(kv.keys) + at);
          std::copy_n(row + (2 * heads + h) * d, d, static_cast<T*>(kv.values) + at);
        }
      }
    }
  }
}

template <typename T>
void ReferenceBackend<T>::time_attention(const Batch& batch, const void* qkv, const KvLayer& kv,
                                         void* out, std::int32_t heads, std::int32_t d,
                                         bool last_only) const {
  const OperationSpan span(Operation::time_attention);
  for (std::int32_t i = 0; i < batch.count; ++i) {
    const Block& b = batch.blocks[i];
    for (std::int32_t lane = 0; lane < b.lanes(); ++lane) {
      for (std::int32_t token = last_only ? b.tokens - 1 : 0; token < b.tokens; ++token) {
        const std::int64_t row = b.row + lane * b.tokens + token;
        const std::int64_t to = last_only ? b.lane + lane : row;
        for (std::int32_t h = 0; h < heads; ++h) {
          const T* query = static_cast<const T*>(qkv) + (row * 3 * heads + h) * d;
          const Visible<T> seen = visible<T>(b, kv, lane, h, token, heads, d);
          attend(
              query, static_cast<T*>(out) + (to * heads + h) * d, seen.count(), d,
              [&](std::int32_t j) { return seen.key(j, d); },
              [&](std::int32_t j) { return seen.value(j, d); }, [](std::int32_t) { return true; });
        }
      }
    }
  }
}

template <typename T>
void ReferenceBackend<T>::variate_attention(const Batch& batch, const void* qkv, void* out,
                                            std::int32_t heads, std::int32_t d) const {
  const OperationSpan span(Operation::variate_attention);
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
            return static_cast<const T*>(qkv) + (row(v) * 3 * heads + which * heads + h) * d;
          };
          attend(
              part(variate, 0), static_cast<T*>(out) + (row(variate) * heads + h) * d, b.variates,
              d, [&](std::int32_t j) { return part(j, 1); },
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
void ReferenceBackend<T>::gather_last(const Batch& batch, const void* x, void* y,
                                      std::int32_t dim) const {
  const OperationSpan span(Operation::gather_last);
  for (std::int32_t i = 0; i < batch.count; ++i) {
    const Block& b = batch.blocks[i];
    for (std::int32_t lane = 0; lane < b.lanes(); ++lane) {
      const std::int64_t row = b.row + lane * b.tokens + b.tokens - 1;
      std::copy_n(static_cast<const T*>(x) + row * dim, dim,
                  static_cast<T*>(y) + std::int64_t{b.lane + lane} * dim);
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
