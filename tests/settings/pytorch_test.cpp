// SPDX-License-Identifier: Apache-2.0
// What PyTorch users have in their environment is never an error and never silent.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/test_files.h"
#include "toto/settings.hpp"

namespace toto {
namespace {

using test::error_of;
using testing::HasSubstr;

struct Case {
  const char* name;
  const char* value;
  const char* says;  // part of its line
};

class PytorchVariable : public testing::TestWithParam<Case> {};

TEST_P(PytorchVariable, IsExplainedAndHarmless) {
  const Case& it = GetParam();
  const Variables variables = {{it.name, it.value}};
  const Settings with = resolve_settings({}, variables);
  const Settings without = Settings::built_in();
  EXPECT_EQ(with.device.value, without.device.value);
  const auto notes = explain(variables);
  ASSERT_EQ(notes.size(), 1U);
  EXPECT_EQ(notes[0].name, it.name);
  EXPECT_EQ(notes[0].value, it.value);
  EXPECT_EQ(notes[0].severity, Severity::info);
  EXPECT_THAT(notes[0].meaning, HasSubstr(it.name));
  EXPECT_THAT(notes[0].meaning, HasSubstr(it.says));
  EXPECT_EQ(notes[0].meaning.find('\n'), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(
    Settings, PytorchVariable,
    testing::Values(Case{"TOTO_COMPILE_BACKEND", "inductor", "cpu, cuda or auto"},
                    Case{"TOTO_COMPILE_BACKEND", "eager", "cpu, cuda or auto"},
                    Case{"TOTO_COMPILE_BACKEND", "aot_eager", "cpu, cuda or auto"},
                    Case{"TOTO_COMPILE_BACKEND", "cudagraphs", "cpu, cuda or auto"},
                    Case{"TOTO_COMPILE_MODE", "max-autotune-no-cudagraphs", "max-autotune here"},
                    Case{"TORCH_COMPILE_MODE", "max-autotune-no-cudagraphs", "max-autotune here"},
                    Case{"TORCH_COMPILE_MODE", "default", "is read here"},
                    Case{"TORCH_COMPILE_MODE", "fast\nlane", "has no effect here"},
                    Case{"TORCH_COMPILE_DISABLE", "1", "TOTO_DISABLE_COMPILE=1"},
                    Case{"TORCHDYNAMO_DISABLE", "1", "TOTO_DISABLE_COMPILE=1"},
                    Case{"TORCHDYNAMO_CAPTURE_SCALAR_OUTPUTS", "1", "no scalar leaves"},
                    Case{"TORCHDYNAMO_VERBOSE", "1", "no tracer"},
                    Case{"TORCHINDUCTOR_CACHE_DIR", "/tmp", "TOTO_PLAN_CACHE_DIR"},
                    Case{"TORCHINDUCTOR_MAX_AUTOTUNE", "1", "TOTO_COMPILE_MODE=max-autotune"},
                    Case{"TORCHINDUCTOR_FREEZING", "1", "no code"},
                    Case{"TORCH_LOGS", "recompiles", "TOTO_LOG"},
                    Case{"TORCH_TRACE", "/tmp", "--trace"}),
    [](const auto& it) {
      std::string name = it.param.name + std::string("_") + it.param.value;
      for (char& ch : name) ch = std::isalnum(static_cast<unsigned char>(ch)) != 0 ? ch : '_';
      return name + std::to_string(it.index);
    });

TEST(Pytorch, ModesMeanWhatTheirLinesSay) {
  const auto mode = [](const char* name, const char* value) {
    return resolve_settings({}, {{name, value}}).mode;
  };
  EXPECT_EQ(mode("TOTO_COMPILE_MODE", "max-autotune-no-cudagraphs").value, Mode::max_autotune);
  EXPECT_EQ(mode("TORCH_COMPILE_MODE", "default").value, Mode::planned);
  EXPECT_EQ(mode("TORCH_COMPILE_MODE", "fast").value, Mode::reduce_overhead);
  EXPECT_EQ(mode("TORCH_COMPILE_MODE", "fast").origin, Origin{});
  // Of a flag and of our own variable what is not a mode stays an error.
  SettingsFlags flags;
  flags.mode = "max-autotune-no-cudagraphs";
  EXPECT_EQ(error_of([&] { resolve_settings(flags, {}); }).code(), "unknown_mode");
  EXPECT_EQ(error_of([&] { mode("TOTO_COMPILE_MODE", "fast"); }).code(), "unknown_mode");
}

TEST(Pytorch, ADeviceThatIsNotNamedSaysWhy) {
  const Settings s = resolve_settings({}, {{"TOTO_COMPILE_BACKEND", "inductor"}});
  EXPECT_EQ(describe(s.device.origin), "built-in (TOTO_COMPILE_BACKEND=inductor names no device)");
}

TEST(Pytorch, SwitchesAreWrittenInAnyWay) {
  for (const char* on : {"1", "on", "yes", "true", "True", "TRUE", "On"}) {
    EXPECT_EQ(resolve_settings({}, {{"TOTO_DISABLE_COMPILE", on}}).mode.value, Mode::eager) << on;
  }
  for (const char* off : {"0", "off", "no", "false", "False", "NO"}) {
    EXPECT_EQ(resolve_settings({}, {{"TOTO_COMPILE", off}}).mode.value, Mode::eager) << off;
    EXPECT_EQ(resolve_settings({}, {{"TOTO_DISABLE_COMPILE", off}}).mode.value,
              Mode::reduce_overhead)
        << off;
  }
  const Error error = error_of([] { resolve_settings({}, {{"TOTO_DISABLE_COMPILE", "maybe"}}); });
  EXPECT_EQ(error.where(), "TOTO_DISABLE_COMPILE");
}

TEST(Pytorch, NamesThatNothingReadsAreWarnings) {
  const auto notes = explain({{"TOTO_COMPILE_MODES", "eager"}, {"PATH", "/bin"}, {"TOTO_", ""}});
  ASSERT_EQ(notes.size(), 1U);
  EXPECT_EQ(notes[0].severity, Severity::warning);
  EXPECT_THAT(notes[0].meaning, HasSubstr("did you mean TOTO_COMPILE_MODE?"));
}

}  // namespace
}  // namespace toto
