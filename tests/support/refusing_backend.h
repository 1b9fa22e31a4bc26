// SPDX-License-Identifier: Apache-2.0
// A backend that does what another one does, but refuses some of the operations of Toto 2.0 that
// take the place of several others (they return false), and counts those that are done.
#pragma once

#include <map>
#include <memory>
#include <utility>

#include "backend/ops2.h"
#include "support/faulty_backend.h"

namespace toto::test {

enum class Joined {
  none,
  copy_in_and_inputs,
  quantiles_and_statistics,
  knot_paths,
  linear_sum,
  norms_ahead,  // norms take float32 rows
  norm_residual_mlp,
  norm_linear,
  norm_values,
  time_attention_and_gather,
};

class RefusingOps2 : public Ops2 {
 public:
  RefusingOps2(const Ops2& inner, Joined refused) : inner_(inner), refused_(refused) {}

  /// How often an operation was done.
  [[nodiscard]] int done(Joined what) const {
    const auto at = done_.find(what);
    return at == done_.end() ? 0 : at->second;
  }

  void for_each_part(const Call& all, const Call& wanted, PartWork work,
                     const void* context) const override {
    inner_.for_each_part(all, wanted, work, context);
  }
  [[nodiscard]] bool exact_ends(std::int32_t width) const override {
    return inner_.exact_ends(width);
  }
  void inputs(const Call& call, const SeriesArrays& a, bool first, const View& z) const override {
    inner_.inputs(call, a, first, z);
  }
  [[nodiscard]] bool copy_in_and_inputs(const Staging& staging, std::size_t bytes, const Call& call,
                                        const SeriesArrays& a, bool first,
                                        const View& z) const override {
    return joined(Joined::copy_in_and_inputs,
                  [&] { return inner_.copy_in_and_inputs(staging, bytes, call, a, first, z); });
  }
  void quantiles(const Call& call, const SeriesArrays& a, const ConstView& raw,
                 const View& y) const override {
    inner_.quantiles(call, a, raw, y);
  }
  [[nodiscard]] bool quantiles_and_statistics(const Call& call, const SeriesArrays& a,
                                              const ConstView& raw, const View& y,
                                              const KnotOutputs& to) const override {
    return joined(Joined::quantiles_and_statistics,
                  [&] { return inner_.quantiles_and_statistics(call, a, raw, y, to); });
  }
  void knot_results(const Call& call, const SeriesArrays& a, const ConstView& quantiles,
                    const KnotOutputs& to) const override {
    inner_.knot_results(call, a, quantiles, to);
  }
  void feed_back(const Call& call, const ConstView& quantiles,
                 const SeriesArrays& a) const override {
    inner_.feed_back(call, quantiles, a);
  }
  [[nodiscard]] bool has_paths() const override { return inner_.has_paths(); }
  void knot_neighbours(const Call& call, const SeriesArrays& a, const ConstView& quantiles,
                       double* scores, float* rho) const override {
    inner_.knot_neighbours(call, a, quantiles, scores, rho);
  }
  void knot_chains(const Call& call, const SeriesArrays& a, const float* rho,
                   const KnotOutputs& to) const override {
    inner_.knot_chains(call, a, rho, to);
  }
  [[nodiscard]] bool knot_paths(const Call& call, const SeriesArrays& a, const ConstView& quantiles,
                                const KnotOutputs& to) const override {
    return joined(Joined::knot_paths, [&] { return inner_.knot_paths(call, a, quantiles, to); });
  }
  void linear_silu(const Matrix& w, const ConstView& x, const View& y) const override {
    inner_.linear_silu(w, x, y);
  }
  [[nodiscard]] bool norms_ahead(Rows rows, std::int32_t width,
                                 std::int32_t inputs) const override {
    if (refused_ == Joined::norms_ahead || refused_ == Joined::linear_sum) return false;
    return inner_.norms_ahead(rows, width, inputs);
  }
  [[nodiscard]] bool linear_sum(const Matrix& w, const ConstView& x, const Matrix& v,
                                const ConstView& z, const View& y,
                                const NormRoom& next) const override {
    return joined(Joined::linear_sum, [&] { return inner_.linear_sum(w, x, v, z, y, next); });
  }
  void linear_ahead(const Matrix& w, const ConstView& x, const View& y,
                    const View& room) const override {
    inner_.linear_ahead(w, x, y, room);
    ++done_[Joined::norms_ahead];
  }
  void rms_norm(const ConstView& x, const View& y, double epsilon) const override {
    inner_.rms_norm(x, y, epsilon);
  }
  [[nodiscard]] bool norm_residual_mlp(const ConstView& x, double epsilon, const NormRoom& room,
                                       const Matrix& first, const Matrix& second,
                                       const Matrix& skip, const View& inner,
                                       const View& y) const override {
    return joined(Joined::norm_residual_mlp, [&] {
      return inner_.norm_residual_mlp(x, epsilon, room, first, second, skip, inner, y);
    });
  }
  [[nodiscard]] bool norm_linear(const ConstView& x, double epsilon, const NormRoom& room,
                                 const Matrix& w, const View& y, Epilogue epilogue) const override {
    return joined(Joined::norm_linear,
                  [&] { return inner_.norm_linear(x, epsilon, room, w, y, epilogue); });
  }
  [[nodiscard]] bool norm_values(const ConstView& x, double epsilon, const NormRoom& room,
                                 const Matrix& w, const HeadShape& shape,
                                 const View& out) const override {
    return joined(Joined::norm_values,
                  [&] { return inner_.norm_values(x, epsilon, room, w, shape, out); });
  }
  [[nodiscard]] bool skips_unread() const override { return inner_.skips_unread(); }
  void linear_values(const Matrix& w, const HeadShape& shape, const ConstView& x,
                     const View& y) const override {
    inner_.linear_values(w, shape, x, y);
  }
  void linear_wanted(const Call& all, const Call& wanted, const Matrix& w, const HeadShape& shape,
                     const ConstView& x, const View& scratch, const View& y) const override {
    inner_.linear_wanted(all, wanted, w, shape, x, scratch, y);
  }
  void time_attention(const Call& all, const Call& wanted, const SeriesArrays& a,
                      const HeadShape& shape, const HeadNorm& norm, const Rotary& rotary,
                      const View& qkv, const KvCache& kv, bool keep,
                      const View& out) const override {
    inner_.time_attention(all, wanted, a, shape, norm, rotary, qkv, kv, keep, out);
  }
  [[nodiscard]] bool time_attention_and_gather(const Call& all, const Call& wanted,
                                               const SeriesArrays& a, const HeadShape& shape,
                                               const HeadNorm& norm, const Rotary& rotary,
                                               const View& qkv, const KvCache& kv, bool keep,
                                               const View& out, const ConstView& x,
                                               const View& y) const override {
    return joined(Joined::time_attention_and_gather, [&] {
      return inner_.time_attention_and_gather(all, wanted, a, shape, norm, rotary, qkv, kv, keep,
                                              out, x, y);
    });
  }
  void variate_attention(const Call& call, const SeriesArrays& a, const HeadShape& shape,
                         const HeadNorm& norm, const View& qkv, const View& out) const override {
    inner_.variate_attention(call, a, shape, norm, qkv, out);
  }
  void gather(const Call& all, const Call& wanted, const ConstView& x,
              const View& y) const override {
    inner_.gather(all, wanted, x, y);
  }

 private:
  template <typename Do>
  bool joined(Joined what, const Do& how) const {
    if (what == refused_ || !how()) return false;
    ++done_[what];
    return true;
  }

  const Ops2& inner_;
  Joined refused_;
  mutable std::map<Joined, int> done_;
};

/// Of a device too: all that Toto 2.0 asks of a backend goes to the other one.
class RefusingBackend : public FaultyBackend {
 public:
  RefusingBackend(const std::shared_ptr<Backend>& inner, Joined refused)
      : FaultyBackend(inner, {}), inner_(inner), ops2_(*inner->ops2(), refused) {}

  [[nodiscard]] const RefusingOps2& operations() const { return ops2_; }
  [[nodiscard]] const Ops2* ops2() const override { return &ops2_; }

  [[nodiscard]] int bind() const override { return inner_->bind(); }
  void unbind(int previous) const noexcept override { inner_->unbind(previous); }
  [[nodiscard]] std::string_view device() const override { return inner_->device(); }
  void upload_bytes(std::span<const std::uint8_t> from, std::uint8_t* to) const override {
    inner_->upload_bytes(from, to);
  }
  void download_bytes(const std::uint8_t* from, std::span<std::uint8_t> to) const override {
    inner_->download_bytes(from, to);
  }
  [[nodiscard]] GraphCapture* capture() override { return inner_->capture(); }
  [[nodiscard]] Staging allocate_staging(std::size_t bytes) override {
    return inner_->allocate_staging(bytes);
  }
  void release_staging(const Staging& staging) noexcept override {
    inner_->release_staging(staging);
  }
  [[nodiscard]] bool reads_device_batches() const override {
    return inner_->reads_device_batches();
  }
  void copy_in(const Staging& staging, std::size_t offset, std::size_t bytes) override {
    inner_->copy_in(staging, offset, bytes);
  }
  void copy_out(const Staging& staging, std::size_t bytes) override {
    inner_->copy_out(staging, bytes);
  }
  [[nodiscard]] std::byte* results(const Staging& staging, std::size_t bytes) const override {
    return inner_->results(staging, bytes);
  }
  void synchronise() const override { inner_->synchronise(); }
  [[nodiscard]] std::uint64_t device_bytes() const override { return inner_->device_bytes(); }
  [[nodiscard]] std::uint64_t host_reads() const override { return inner_->host_reads(); }
  [[nodiscard]] StatisticsLimits statistics_limits() const override {
    return inner_->statistics_limits();
  }

 private:
  std::shared_ptr<Backend> inner_;
  RefusingOps2 ops2_;
};

}  // namespace toto::test
