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

  void inputs(const Call& call, const SeriesArrays& a, bool first, const Matrix& next,
              void* z) const override {
    take_([=, this] { inner_.inputs(now(call), a, first, next, z); });
  }
  void quantiles(const Call& call, const SeriesArrays& a, const void* raw, void* y) const override {
    take_([=, this] { inner_.quantiles(now(call), a, raw, y); });
  }
  void knot_results(const Call& call, const SeriesArrays& a, const void* quantiles,
                    const KnotOutputs& to) const override {
    take_([=, this] { inner_.knot_results(now(call), a, quantiles, to); });
  }
  void feed_back(const Call& call, const void* quantiles, const SeriesArrays& a) const override {
    take_([=, this] { inner_.feed_back(now(call), quantiles, a); });
  }
  void linear_silu(const Matrix& w, const void* x, void* y, Rows rows) const override {
    take_([=, this] { inner_.linear_silu(w, x, y, now(rows)); });
  }
  void rms_norm(const void* x, void* y, Rows rows, const Matrix& next,
                double epsilon) const override {
    take_([=, this] { inner_.rms_norm(x, y, now(rows), next, epsilon); });
  }
  void time_attention(const Call& all, const Call& wanted, const SeriesArrays& a,
                      const HeadShape& shape, const HeadNorm& norm, const Rotary& rotary, void* qkv,
                      const KvCache& kv, bool keep, void* out) const override {
    take_([=, this] {
      inner_.time_attention(now(all), now(wanted), a, shape, norm, rotary, qkv, kv, keep, out);
    });
  }
  void variate_attention(const Call& call, const SeriesArrays& a, const HeadShape& shape,
                         const HeadNorm& norm, void* qkv, void* out) const override {
    take_([=, this] { inner_.variate_attention(now(call), a, shape, norm, qkv, out); });
  }
  void gather(const Call& all, const Call& wanted, const void* x, void* y,
              std::int32_t dim) const override {
    take_([=, this] { inner_.gather(now(all), now(wanted), x, y, dim); });
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
  static Rows now(const Rows& rows) {
    if (rows.live == nullptr) return rows;
    EXPECT_LE(*rows.live * rows.times, rows.count);
    return Rows(*rows.live * rows.times);
  }

  const Ops2& inner_;
  Take take_;
};

}  // namespace toto::test
