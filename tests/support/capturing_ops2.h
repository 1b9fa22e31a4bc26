// SPDX-License-Identifier: Apache-2.0
// The operations of Toto 2.0 on a CapturingBackend: kept while it captures, carried out on calls as
// they lie on its device side then.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <utility>

#include "backend/ops2.h"

namespace toto::test {

class CapturingOps2 final : public Ops2 {
 public:
  using Take = std::function<void(std::function<void()>)>;
  CapturingOps2(const Ops2& inner, Take take) : inner_(inner), take_(std::move(take)) {}

  void inputs(const Call& call, const SeriesArrays& a, bool first, const View& z) const override {
    take_([=, this] { inner_.inputs(now(call), a, first, z); });
  }
  void quantiles(const Call& call, const SeriesArrays& a, const ConstView& raw,
                 const View& y) const override {
    take_([=, this] { inner_.quantiles(now(call), a, raw, y); });
  }
  void knot_results(const Call& call, const SeriesArrays& a, const ConstView& quantiles,
                    const KnotOutputs& to) const override {
    take_([=, this] { inner_.knot_results(now(call), a, quantiles, to); });
  }
  void feed_back(const Call& call, const ConstView& quantiles,
                 const SeriesArrays& a) const override {
    take_([=, this] { inner_.feed_back(now(call), quantiles, a); });
  }
  [[nodiscard]] bool has_paths() const override { return inner_.has_paths(); }
  void knot_neighbours(const Call& call, const SeriesArrays& a, const ConstView& quantiles,
                       double* scores, float* rho) const override {
    take_([=, this] { inner_.knot_neighbours(now(call), a, quantiles, scores, rho); });
  }
  void knot_chains(const Call& call, const SeriesArrays& a, const float* rho,
                   const KnotOutputs& to) const override {
    take_([=, this] { inner_.knot_chains(now(call), a, rho, to); });
  }
  void linear_silu(const Matrix& w, const ConstView& x, const View& y) const override {
    take_([=, this] { inner_.linear_silu(w, now(x), y); });
  }
  void rms_norm(const ConstView& x, const View& y, double epsilon) const override {
    take_([=, this] { inner_.rms_norm(now(x), y, epsilon); });
  }
  void time_attention(const Call& all, const Call& wanted, const SeriesArrays& a,
                      const HeadShape& shape, const HeadNorm& norm, const Rotary& rotary,
                      const View& qkv, const KvCache& kv, bool keep,
                      const View& out) const override {
    take_([=, this] {
      inner_.time_attention(now(all), now(wanted), a, shape, norm, rotary, qkv, kv, keep, out);
    });
  }
  void variate_attention(const Call& call, const SeriesArrays& a, const HeadShape& shape,
                         const HeadNorm& norm, const View& qkv, const View& out) const override {
    take_([=, this] { inner_.variate_attention(now(call), a, shape, norm, qkv, out); });
  }
  void gather(const Call& all, const Call& wanted, const ConstView& x,
              const View& y) const override {
    take_([=, this] { inner_.gather(now(all), now(wanted), x, y); });
  }

 private:
  /// The call as it is when an operation is carried out: always on the device, where counts are at
  /// most those it was captured with.
  static Call now(const Call& call) {
    EXPECT_NE(call.live, nullptr);
    const LiveCall& live = *call.live;
    EXPECT_TRUE(live.count <= call.count && live.rows <= call.rows && live.lanes <= call.lanes &&
                live.keys <= call.keys);
    return {live.slices, live.count, live.rows, live.lanes, live.keys, nullptr};
  }
  static ConstView now(ConstView view) {
    const Rows& rows = view.rows;
    if (rows.live == nullptr) return view;
    EXPECT_LE(*rows.live * rows.times, rows.count);
    view.rows = *rows.live * rows.times;
    return view;
  }

  const Ops2& inner_;
  Take take_;
};

}  // namespace toto::test
