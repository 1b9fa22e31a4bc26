// SPDX-License-Identifier: Apache-2.0
// What Toto 2.0 tells a backend whose products leave what a norm after them takes
// (Ops2::norms_ahead): where a norm is told that something was left, that is the rows it norms.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "backend/cpu/cpu_backend.h"
#include "support/refusing_backend.h"
#include "support/requests.h"
#include "support/toto2_requests.h"

namespace toto {
namespace {

using test::Joined;
using test::OwnedSeries;

/// On a CPU, in float32: products leave the rows themselves. Calls are one part, as on a device.
class LeavingOps2 final : public test::RefusingOps2 {
 public:
  LeavingOps2(const Backend& backend, bool joins)
      : RefusingOps2(*backend.ops2(), Joined::none), backend_(backend), joins_(joins) {}

  [[nodiscard]] int taken() const { return taken_; }
  [[nodiscard]] int wrong() const { return wrong_; }

  void for_each_part(const Call& all, const Call& wanted, PartWork work,
                     const void* context) const override {
    Ops2::for_each_part(all, wanted, work, context);
  }
  [[nodiscard]] bool skips_unread() const override { return false; }
  [[nodiscard]] bool norms_ahead(Rows rows, std::int32_t /*width*/,
                                 std::int32_t /*inputs*/) const override {
    return rows.count <= kMost;
  }
  [[nodiscard]] bool linear_sum(const Matrix& w, const ConstView& x, const Matrix& v,
                                const ConstView& z, const View& y,
                                const NormRoom& next) const override {
    backend_.linear(w, x, y, Epilogue::store);
    backend_.linear(v, z, y, Epilogue::residual);
    if (next.ahead) leave(y, next.room);
    return true;
  }
  void linear_ahead(const Matrix& w, const ConstView& x, const View& y,
                    const View& room) const override {
    backend_.linear(w, x, y, Epilogue::residual);
    leave(y, room);
  }
  [[nodiscard]] bool norm_linear(const ConstView& x, double epsilon, const NormRoom& room,
                                 const Matrix& w, const View& y, Epilogue epilogue) const override {
    take(x, room);
    if (!joins_) return false;
    const View normed = room.room.as(backend_.operand_type(w), x.rows, w.in);
    rms_norm(x, normed, epsilon);
    backend_.linear(w, normed, y, epilogue);
    return true;
  }
  [[nodiscard]] bool norm_values(const ConstView& x, double /*epsilon*/, const NormRoom& room,
                                 const Matrix& /*w*/, const HeadShape& /*shape*/,
                                 const View& /*out*/) const override {
    take(x, room);
    return false;
  }
  [[nodiscard]] bool norm_residual_mlp(const ConstView& x, double /*epsilon*/, const NormRoom& room,
                                       const Matrix& /*first*/, const Matrix& /*second*/,
                                       const Matrix& /*skip*/, const View& /*inner*/,
                                       const View& /*y*/) const override {
    take(x, room);
    return false;
  }

 private:
  static constexpr std::int32_t kMost = 24;  // some calls have more rows

  static std::size_t bytes(const ConstView& x) {
    return static_cast<std::size_t>(x.rows.count) * static_cast<std::size_t>(x.width) *
           sizeof(float);
  }
  static void leave(const View& y, const View& room) { std::memcpy(room.data, y.data, bytes(y)); }
  void take(const ConstView& x, const NormRoom& room) const {
    if (!room.ahead) return;
    ++taken_;
    if (std::memcmp(x.data, room.room.data, bytes(x)) != 0) ++wrong_;
  }

  const Backend& backend_;
  bool joins_;
  mutable int taken_ = 0, wrong_ = 0;
};

class LeavingBackend final : public test::RefusingBackend {
 public:
  LeavingBackend(const std::shared_ptr<Backend>& inner, bool joins)
      : RefusingBackend(inner, Joined::none), own_(*inner, joins) {}
  [[nodiscard]] const Ops2* ops2() const override { return &own_; }
  [[nodiscard]] const LeavingOps2& own() const { return own_; }

 private:
  LeavingOps2 own_;
};

/// One series, three of several variates, in one pass and block by block.
std::vector<Forecast> forecasts(const Toto2Config& config, const std::shared_ptr<Backend>& backend,
                                bool trim) {
  auto impl = std::make_shared<Model::Impl>();
  impl->info.name = impl->content_hash = "small";
  impl->configuration = to_json(config);
  impl->net = test::network(config, backend, trim);
  Forecaster forecaster{Model(impl)};
  const auto patch = static_cast<std::size_t>(config.patch_size);
  const std::vector<OwnedSeries> owned = {test::wave(0, 6 * patch + 3), test::wave(1, 9 * patch, 3),
                                          test::wave(2, 2 * patch + 1)};
  ForecastOptions o;
  o.horizon = 2 * patch + 1;
  std::vector<Forecast> all;
  for (const std::size_t block : {std::size_t{0}, patch}) {
    o.decoding.decode_block_size = block;
    for (const std::ptrdiff_t count : {1, 3}) {
      const std::vector<OwnedSeries> part(owned.begin(), owned.begin() + count);
      for (Forecast& one : forecaster.forecast(test::views(part), o)) all.push_back(std::move(one));
    }
  }
  return all;
}

struct Case {
  std::string name;
  Toto2Config config;
  bool trim;
};

class NormsAhead : public testing::TestWithParam<Case> {};

TEST_P(NormsAhead, FindTheRowsThatTheyNorm) {
  const Case& c = GetParam();
  const auto cpu = [] { return std::shared_ptr<Backend>(make_cpu_backend({})); };
  const std::vector<Forecast> plain = forecasts(c.config, cpu(), c.trim);
  for (const bool joins : {false, true}) {
    SCOPED_TRACE(joins);
    const auto backend = std::make_shared<LeavingBackend>(cpu(), joins);
    const std::vector<Forecast> found = forecasts(c.config, backend, c.trim);
    EXPECT_GT(backend->own().taken(), 0);
    EXPECT_EQ(backend->own().wrong(), 0);
    ASSERT_EQ(found.size(), plain.size());
    for (std::size_t i = 0; i < found.size(); ++i) test::expect_same(found[i], plain[i]);
  }
}

Toto2Config with_variate_layers(std::int32_t count) {
  Toto2Config c = test::released();
  c.variate_layers_per_group = count;
  return c;
}

INSTANTIATE_TEST_SUITE_P(Models, NormsAhead,
                         testing::Values(Case{"Released", test::released(), true},
                                         Case{"AllTokens", test::released(), false},
                                         Case{"Odd", test::odd(), true},
                                         Case{"TimeLayersAlone", with_variate_layers(0), true},
                                         Case{"VariateLayersAlone", with_variate_layers(4), true}),
                         [](const auto& made) { return made.param.name; });

}  // namespace
}  // namespace toto
