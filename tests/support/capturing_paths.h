// SPDX-License-Identifier: Apache-2.0
// Coherent paths on a CapturingBackend: kept while it captures, carried out on batches as they lie
// on its device side then.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <utility>

#include "backend/path_ops.h"

namespace toto::test {

class CapturingPaths final : public PathOps {
 public:
  using Take = std::function<void(std::function<void()>)>;
  CapturingPaths(PathOps& inner, Take take) : inner_(inner), take_(std::move(take)) {}

  void reserve(std::int32_t components) override {
    take_([=, this] { inner_.reserve(components); });
  }
  void neighbours(const Batch& context, const PatchShape& shape, const ConstView& params,
                  const ConstView& loc, const ConstView& scale, const float* x,
                  const std::uint8_t* mask, double* scores, float* rho) const override {
    take_([=, this] {
      inner_.neighbours(now(context), shape, params, loc, scale, x, mask, scores, rho);
    });
  }
  void draw(const Batch& batch, const Batch* shared, const Batch& source, const PatchShape& shape,
            const ConstView& params, const ConstView& loc, const ConstView& scale, const float* rho,
            const View& y) const override {
    const std::optional<Batch> from = shared == nullptr ? std::nullopt : std::optional(*shared);
    take_([=, this] {
      const Batch first = from ? now(*from) : Batch{};
      inner_.draw(now(batch), from ? &first : nullptr, now(source), shape, params, loc, scale, rho,
                  y);
    });
  }

 private:
  /// The batch as it is when an operation is carried out.
  static Batch now(const Batch& b) {
    EXPECT_NE(b.live, nullptr);
    const LiveBatch& live = *b.live;
    EXPECT_TRUE(live.count <= b.count && live.rows <= b.rows && live.lanes <= b.lanes);
    return {live.blocks, live.ids, live.count, live.rows, live.lanes};
  }

  PathOps& inner_;
  Take take_;
};

}  // namespace toto::test
