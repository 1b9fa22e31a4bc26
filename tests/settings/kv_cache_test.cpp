// SPDX-License-Identifier: Apache-2.0
// Where the keys and values of a context are kept, as a setting.
#include <gmock/gmock.h>

#include "support/test_files.h"
#include "toto/settings.hpp"

namespace toto {
namespace {

using test::error_of;
using testing::HasSubstr;

TEST(KvCacheSetting, IsThatOfTheModeUnlessItIsNamed) {
  SettingsFlags eager;
  eager.mode = "eager";
  EXPECT_EQ(resolve_settings(eager, {}).kv_cache.value, ContextCache::per_trajectory);
  EXPECT_EQ(describe(resolve_settings(eager, {}).kv_cache.origin), "built-in (of the mode)");
  eager.kv_cache = "shared";
  EXPECT_EQ(resolve_settings(eager, {}).kv_cache.value, ContextCache::shared);
}

TEST(KvCacheSetting, GoesBackWithTheMode) {
  SettingsFlags flags;
  flags.kv_cache = "shared";
  const Settings back =
      resolve_settings(flags, {{"TOTO_DISABLE_COMPILE", "1"}, {"TOTO_KV_CACHE", "shared"}});
  EXPECT_EQ(back.kv_cache.value, ContextCache::per_trajectory);
  EXPECT_EQ(describe(back.kv_cache.origin), "environment TOTO_DISABLE_COMPILE");
}

TEST(KvCacheSetting, NonsenseNamesWhereItStands) {
  for (const char* text : {"none", "Shared", "shared,private"}) {
    SettingsFlags flags;
    flags.kv_cache = text;
    const Error of_flag = error_of([&] { resolve_settings(flags, {}); });
    EXPECT_EQ(of_flag.code(), "unknown_kv_cache");
    EXPECT_EQ(of_flag.status(), ExitStatus::usage);
    EXPECT_EQ(of_flag.where(), "--kv-cache");
    const Error of_variable = error_of([&] { resolve_settings({}, {{"TOTO_KV_CACHE", text}}); });
    EXPECT_EQ(of_variable.code(), "unknown_kv_cache");
    EXPECT_EQ(of_variable.status(), ExitStatus::bad_config);
    EXPECT_THAT(of_variable.message(), HasSubstr("shared, private"));
  }
}

}  // namespace
}  // namespace toto
