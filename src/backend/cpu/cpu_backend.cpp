// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/cpu_backend.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "backend/cpu/product.h"
#include "backend/expected_views.h"
#include "backend/operation.h"
#include "toto/error.hpp"

namespace toto::cpu {

CpuBackend::CpuBackend(Isa isa, CpuWeights weights, int threads, bool spin)
    : isa_(isa),
      weights_(weights),
      products_(product_kernels(isa)),
      rows_(row_kernels(isa)),
      attention_(attention_kernels(isa)),
      team_(threads, spin),
      scratch_(team_.size()),
      ops2_(isa, products_, team_, scratch_),
      paths_(isa, team_, scratch_) {
  scratch_.reserve(sizeof(AttentionScratch));
}

double CpuBackend::weight_size() const {
  return weights_ == CpuWeights::int8 ? 1 : weights_ == CpuWeights::bf16 ? 2 : 4;
}

void CpuBackend::for_each_share(std::int64_t count, ShareWork work, const void* context) const {
  const int threads =
      static_cast<int>(std::min<std::int64_t>(team_.size(), std::max<std::int64_t>(count, 1)));
  team_.run(threads, [&](int thread) noexcept {
    const Range range = share(count, threads, thread);
    work(context, range.begin, range.end, thread);
  });
}

void* CpuBackend::allocate(std::size_t bytes) {
  std::byte* memory = allocate_pages(bytes).release();
  std::memset(memory, 0, bytes);
  return memory;
}

void CpuBackend::release(void* memory) noexcept { std::free(memory); }

void CpuBackend::upload(std::span<const double> from, const View& to) const {
  expected::activations(*this, "upload: to", to, from.size());
  std::transform(from.begin(), from.end(), typed<float>(to),
                 [](double v) { return static_cast<float>(v); });
}

void CpuBackend::upload(std::span<const float> from, const View& to) const {
  expected::activations(*this, "upload: to", to, from.size());
  std::copy(from.begin(), from.end(), typed<float>(to));
}

void CpuBackend::download(const ConstView& from, std::span<double> to) const {
  expected::activations(*this, "download: from", from, to.size());
  const float* source = typed<float>(from);
  std::copy(source, source + to.size(), to.begin());
}

Matrix CpuBackend::upload_matrix(std::unique_ptr<float[]> take, std::int32_t out, std::int32_t in,
                                 std::span<const float> bias, Epilogue use) {
  return pack(format(), take.get(), out, in, bias, use);
}

Matrix CpuBackend::upload_exact_matrix(std::unique_ptr<float[]> take, std::int32_t out,
                                       std::int32_t in, std::span<const float> bias, Epilogue use) {
  return pack(products_.f32, take.get(), out, in, bias, use);
}

int CpuBackend::product_candidates() const { return static_cast<int>(std::size(kBlockRows)); }

void CpuBackend::choose_product(const Matrix& w, int candidate) {
  const auto same = [&](const auto& matrix) { return matrix.get() == w.weights; };
  const auto at = std::find_if(matrices_.begin(), matrices_.end(), same);
  (*at)->block_rows = kBlockRows[candidate];
}

const TileFormat& CpuBackend::format() const {
  return weights_ == CpuWeights::bf16   ? products_.bf16
         : weights_ == CpuWeights::int8 ? products_.int8
                                        : products_.f32;
}

Matrix CpuBackend::pack(const TileFormat& format, const float* weights, std::int32_t out,
                        std::int32_t in, std::span<const float> bias, Epilogue use) {
  return keep(pack_matrix(weights, out, in, bias, use == Epilogue::gated, format, products_.columns,
                          arena_, team_),
              out);
}

Matrix CpuBackend::upload_folded_matrix(const FoldedMatrix& matrix, Epilogue use, bool exact) {
  return keep(pack_matrix(matrix, use == Epilogue::gated, exact ? products_.f32 : format(),
                          products_.columns, arena_, team_),
              matrix.out);
}

Matrix CpuBackend::keep(const PackedMatrix& matrix, std::int32_t out) {
  scratch_.reserve(prepared_bytes(*matrix.format, matrix.in));
  matrices_.push_back(std::make_unique<PackedMatrix>(matrix));
  const PackedMatrix& packed = *matrices_.back();
  // Models upload weights in the order in which they read them; where not, a prefetch is wasted.
  if (matrices_.size() > 1) matrices_[matrices_.size() - 2]->following = &packed;
  return {&packed, out, matrix.in};
}

void CpuBackend::linear(const Matrix& w, const ConstView& x, const View& y,
                        Epilogue epilogue) const {
  const OperationSpan span(Operation::linear);
  expected::linear(*this, w, x, y, epilogue);
  const auto& packed = *static_cast<const PackedMatrix*>(w.weights);
  const Product product{&products_,      &packed,         packed.gated ? w.out / 2 : w.out,
                        typed<float>(x), typed<float>(y), x.rows.count,
                        epilogue};
  multiply(product, team_, scratch_);
}

}  // namespace toto::cpu

namespace toto {

std::unique_ptr<Backend> make_cpu_backend(const CpuOptions& options) {
  const cpu::Isa isa = cpu::find_isa(options.isa);
  if (options.threads < 0 || options.threads > cpu::kMaxThreads) {
    throw Error(ExitStatus::usage, "invalid_threads",
                "the number of threads must be 1 to " + std::to_string(cpu::kMaxThreads) +
                    ", or 0 for the available cores; it is " + std::to_string(options.threads));
  }
  return std::make_unique<cpu::CpuBackend>(isa, options.weights, options.threads, options.spin);
}

}  // namespace toto
