// SPDX-License-Identifier: Apache-2.0
// Forecasters share a model's backend: each gives its memory back when it has its turn, since a
// device that records a forecast must not be waited for meanwhile.
#include <future>

#include "support/faulty_backend.h"
#include "support/requests.h"

namespace toto {
namespace {

TEST(DeviceTurn, AForecasterGivesMemoryBackInItsTurn) {
  int released = 0, out_of_turn = 0;
  std::mutex* turn = nullptr;
  test::Faults faults;
  faults.on_release = [&] {
    ++released;
    if (turn == nullptr) return;
    out_of_turn += std::async(std::launch::async, [&] {
                     const std::unique_lock lock(*turn, std::try_to_lock);
                     return lock.owns_lock() ? 1 : 0;
                   }).get();
  };
  const auto impl =
      test::impl_on(std::make_shared<test::FaultyBackend>(make_reference_backend_f32(), faults),
                    test::spec_config());
  turn = &impl->turn;
  const Model model(impl);
  const auto owned = test::many(2);
  {
    Forecaster first(model);
    Forecaster second(model);
    (void)first.forecast(test::views(owned), {});
    (void)second.forecast(test::views(owned), {});
    const int before = released;
    second = std::move(first);
    EXPECT_GT(released, before);
  }
  EXPECT_GT(released, 3);
  EXPECT_EQ(out_of_turn, 0);
  turn = nullptr;
}

}  // namespace
}  // namespace toto
