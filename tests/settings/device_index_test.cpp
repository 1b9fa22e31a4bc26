// SPDX-License-Identifier: Apache-2.0
// Which GPU a flag or a variable names.
#include <gtest/gtest.h>

#include "toto/settings.hpp"

namespace toto {
namespace {

TEST(DeviceIndex, IsPartOfTheWord) {
  SettingsFlags flags;
  flags.device = "cuda:3";
  const Settings s = resolve_settings(flags, {});
  EXPECT_EQ(s.device.value, Device::cuda);
  EXPECT_EQ(s.device_index, 3);
  EXPECT_EQ(s.device.origin.source, Source::flag);
  const Settings by_variable = Settings::from_environment({{"TOTO_COMPILE_BACKEND", "cuda:1"}});
  EXPECT_EQ(by_variable.device.value, Device::cuda);
  EXPECT_EQ(by_variable.device_index, 1);
  EXPECT_EQ(Settings::built_in().device_index, 0);
}

}  // namespace
}  // namespace toto
