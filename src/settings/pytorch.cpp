// SPDX-License-Identifier: Apache-2.0
// Each variable of PyTorch that is set is explained in one line: never an error, never silent.
#include "settings/pytorch.h"

#include <algorithm>
#include <array>
#include <vector>

#include "core/closest.h"
#include "core/json.h"
#include "settings/words.h"

namespace toto {
namespace {

constexpr std::array<std::string_view, 16> kBackendsOfPytorch = {"aot_eager",
                                                                 "aot_eager_decomp_partition",
                                                                 "aot_ts",
                                                                 "cudagraphs",
                                                                 "eager",
                                                                 "hpu_backend",
                                                                 "inductor",
                                                                 "ipex",
                                                                 "nvprims_nvfuser",
                                                                 "onnxrt",
                                                                 "openxla",
                                                                 "openxla_eval",
                                                                 "tensorrt",
                                                                 "torch_tensorrt",
                                                                 "ts",
                                                                 "tvm"};

struct Meaning {
  std::string_view name;  // or, where it ends in _, how the name begins
  std::string_view meaning;
};
// The first that fits.
constexpr Meaning kMeanings[] = {
    {"TORCHDYNAMO_DISABLE", "has no effect here: TOTO_DISABLE_COMPILE=1 makes the mode eager"},
    {"TORCH_COMPILE_DISABLE", "has no effect here: TOTO_DISABLE_COMPILE=1 makes the mode eager"},
    {"TORCHDYNAMO_CAPTURE_SCALAR_OUTPUTS", "has no effect here: no scalar leaves the device"},
    {"TORCHDYNAMO_", "has no effect here: there is no tracer"},
    {"TORCHINDUCTOR_CACHE_DIR", "has no effect here: plans are kept in TOTO_PLAN_CACHE_DIR"},
    {"TORCHINDUCTOR_FORCE_DISABLE_CACHES", "has no effect here: use --plan-cache never"},
    {"TORCHINDUCTOR_MAX_AUTOTUNE", "has no effect here: use TOTO_COMPILE_MODE=max-autotune"},
    {"TORCHINDUCTOR_", "has no effect here: no code is generated"},
    {"TORCH_LOGS", "has no effect here: use TOTO_LOG=plans,graphs,cache,memory"},
    {"TORCH_TRACE", "has no effect here: use toto forecast --trace FILE, or TOTO_LOG=all"},
    {"TORCH_COMPILE_", "has no effect here"},
};

std::string_view meaning_of(std::string_view name) {
  for (const Meaning& one : kMeanings) {
    if (one.name.ends_with('_') ? name.starts_with(one.name) : name == one.name) return one.meaning;
  }
  return {};
}

std::string explain_mode(const std::string& name, const std::string& value) {
  if (const auto ours = mode_of_pytorch(value)) {
    return name + "=" + value + " means " + *ours +
           " here: graphs are captured on a device in both, and change no bit";
  }
  if (name != "TORCH_COMPILE_MODE") return {};
  if (find_word(kModes, value)) {
    return "TORCH_COMPILE_MODE is read here where TOTO_COMPILE_MODE is not set";
  }
  return "TORCH_COMPILE_MODE has no effect here: expected one of " + list_words(kModes) +
         ", found " + quote(value);
}

std::string explain_unread(const std::string& name) {
  std::vector<std::string> known;
  for (const std::string_view one : setting_variables()) known.emplace_back(one);
  if (std::find(known.begin(), known.end(), name) != known.end()) return {};
  const std::string_view near = closest(name, known);
  std::string message = name + " is set, but this version does not read it";
  if (!near.empty()) message.append(" (did you mean ").append(near).append("?)");
  return message;
}

}  // namespace

bool is_pytorch_backend(std::string_view text) {
  return std::find(kBackendsOfPytorch.begin(), kBackendsOfPytorch.end(), text) !=
         kBackendsOfPytorch.end();
}

std::optional<std::string> mode_of_pytorch(std::string_view text) {
  if (text != "max-autotune-no-cudagraphs") return std::nullopt;
  return "max-autotune";
}

std::vector<VariableNote> explain(const Variables& variables) {
  std::vector<VariableNote> notes;
  for (const auto& [name, value] : variables) {
    if (value.empty()) continue;
    const auto add = [&, name = name, value = value](std::string meaning, Severity severity) {
      if (!meaning.empty()) notes.push_back({name, value, std::move(meaning), severity});
    };
    if (name == "TOTO_COMPILE_BACKEND" && is_pytorch_backend(value)) {
      add("TOTO_COMPILE_BACKEND=" + value +
              " is a backend of torch.compile and has no effect here: this variable chooses the "
              "device (cpu, cuda or auto)",
          Severity::info);
    } else if (name == "TOTO_COMPILE_MODE" || name == "TORCH_COMPILE_MODE") {
      add(explain_mode(name, value), Severity::info);
    } else if (name.starts_with("TOTO_SERVE_")) {
      // Flags of toto serve: cli/serve_options.cpp knows them.
    } else if (name.starts_with("TOTO_")) {
      add(explain_unread(name), Severity::warning);
    } else if (const std::string_view meaning = meaning_of(name); !meaning.empty()) {
      add(name + " " + std::string(meaning), Severity::info);
    }
  }
  return notes;
}

}  // namespace toto
