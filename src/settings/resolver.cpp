// SPDX-License-Identifier: Apache-2.0
#include "settings/resolver.h"

#include <fmt/format.h>

#include <limits>
#include <utility>

#include "core/cpu_info.h"
#include "core/json.h"
#include "settings/pytorch.h"
#include "settings/words.h"

namespace toto {
namespace {

constexpr int kMaxThreads = 1024;
constexpr std::size_t kMaxPlans = 65'536;
constexpr std::uint64_t kLargest = std::numeric_limits<std::uint64_t>::max();

// How a value is read, and what an error says.
template <typename Read>
struct Kind {
  std::string_view code;
  std::string valid;
  Read read;
};

template <typename Read>
Kind<Read> kind_of(std::string_view code, std::string valid, Read read) {
  return {code, std::move(valid), read};
}

template <typename Words>
auto one_of(std::string_view code, const Words& words) {
  return kind_of(code, "one of " + list_words(words),
                 [&words](std::string_view text) { return find_word(words, text); });
}

auto whole(std::string_view code, std::uint64_t least, std::uint64_t most) {
  return kind_of(code, fmt::format("a whole number from {} to {}", least, most),
                 [=](std::string_view text) { return read_whole(text, least, most); });
}

std::optional<std::string> any_text(std::string_view text) {
  return text.empty() ? std::nullopt : std::optional<std::string>(text);
}

auto some_text() { return kind_of("invalid_setting", "a value", any_text); }

template <typename Read>
auto read(const Written& written, const Kind<Read>& kind) {
  const auto value = kind.read(written.text);
  if (!value) {
    throw Error(written.origin.source == Source::flag ? ExitStatus::usage : ExitStatus::bad_config,
                kind.code, fmt::format("expected {}, found {}", kind.valid, quote(written.text)),
                written.origin.name);
  }
  return *value;
}

template <typename T, typename Read>
Setting<T> choose(const std::optional<Written>& written, const Kind<Read>& kind,
                  Setting<T> otherwise) {
  if (!written) return otherwise;
  return {static_cast<T>(read(*written, kind)), written->origin};
}

Setting<Mode> eager_by(const char* variable) {
  return {Mode::eager, {Source::environment, variable}};
}

}  // namespace

Resolver::Resolver(const SettingsFlags& flags, const Variables& variables)
    : flags_(flags),
      variables_(variables),
      preset_(choose<std::optional<Preset>>(written(flags.preset, "--preset", {}),
                                            one_of("unknown_preset", kPresets), {})),
      values_(preset_.value ? preset_values(*preset_.value) : PresetValues{}) {}

std::optional<std::string> Resolver::variable(const char* name) const {
  const auto found = variables_.find(name);
  if (found == variables_.end() || found->second.empty()) return std::nullopt;
  return found->second;
}

/// What the flag says, else the first of the variables that is set.
std::optional<Written> Resolver::written(const SettingsFlags::Text& flag,
                                         std::string_view flag_name,
                                         std::initializer_list<const char*> variables) const {
  if (flag) return Written{*flag, {Source::flag, std::string(flag_name)}};
  for (const char* name : variables) {
    if (auto value = variable(name)) return Written{*value, {Source::environment, name}};
  }
  return std::nullopt;
}

std::optional<bool> Resolver::switched(const char* name) const {
  const auto found = written({}, {}, {name});
  if (!found) return std::nullopt;
  return read(*found, kind_of("invalid_setting", "one of " + list_words(kSwitches), read_switch));
}

template <typename T>
Setting<T> Resolver::fallback(const std::optional<T>& from_preset, T built_in) const {
  if (from_preset && preset_.value) {
    return {*from_preset, {Source::preset, std::string(word(*preset_.value))}};
  }
  return {std::move(built_in), {}};
}

std::optional<Setting<Mode>> Resolver::forced_mode() const {
  if (!switched("TOTO_DISABLE_COMPILE").value_or(false)) return std::nullopt;
  return eager_by("TOTO_DISABLE_COMPILE");
}

/// PyTorch's words are translated, and what is not one of ours in PyTorch's own variable is no
/// word.
std::optional<Written> Resolver::written_mode() const {
  auto found = written(flags_.mode, "--mode", {"TOTO_COMPILE_MODE", "TORCH_COMPILE_MODE"});
  if (!found || found->origin.source == Source::flag) return found;
  if (const auto ours = mode_of_pytorch(found->text)) found->text = *ours;
  if (found->origin.name == "TORCH_COMPILE_MODE" && !find_word(kModes, found->text)) {
    return std::nullopt;
  }
  return found;
}

Setting<Mode> Resolver::mode() const {
  if (const auto forced = forced_mode()) return *forced;
  if (!flags_.mode && !switched("TOTO_COMPILE").value_or(true)) return eager_by("TOTO_COMPILE");
  Setting<Mode> otherwise = fallback(values_.mode, kDefaultMode);
  const auto found = written_mode();
  if (!found && otherwise.value == Mode::eager && switched("TOTO_COMPILE").value_or(false)) {
    return {kDefaultMode, {Source::environment, "TOTO_COMPILE"}};
  }
  return choose<Mode>(found, one_of("unknown_mode", kModes), std::move(otherwise));
}

// The way back goes all the way.
Setting<ContextCache> Resolver::kv_cache(Mode mode) const {
  if (const auto forced = forced_mode()) return {default_kv_cache(forced->value), forced->origin};
  return choose<ContextCache>(written(flags_.kv_cache, "--kv-cache", {"TOTO_KV_CACHE"}),
                              one_of("unknown_kv_cache", kKvCaches),
                              {default_kv_cache(mode), {Source::built_in, "of the mode"}});
}

int Resolver::device_index() const {
  const auto found = written(flags_.device, "--device", {"TOTO_COMPILE_BACKEND"});
  return found ? index_of_gpu(found->text).value_or(0) : 0;
}

Setting<Device> Resolver::device() const {
  auto found = written(flags_.device, "--device", {"TOTO_COMPILE_BACKEND"});
  if (found && index_of_gpu(found->text)) return {Device::cuda, std::move(found->origin)};
  Setting<Device> otherwise = {Device::cpu, {}};
  if (found && found->origin.source == Source::environment && is_pytorch_backend(found->text)) {
    otherwise.origin.name = "TOTO_COMPILE_BACKEND=" + found->text + " names no device";
    return otherwise;
  }
  return choose<Device>(found, one_of("unknown_device", kDevices), std::move(otherwise));
}

Setting<Precision> Resolver::precision() const {
  return choose<Precision>(written(flags_.precision, "--precision", {}),
                           one_of("unknown_dtype", kPrecisions),
                           fallback(values_.precision, Precision::float32));
}

// Only the reference computes in float64.
Setting<std::string> Resolver::backend(Precision precision) const {
  Setting<std::string> backend = {"cpu", {}};
  if (precision == Precision::float64) {
    backend = {"reference", {Source::built_in, "for float64"}};
  }
  return choose<std::string>(written(flags_.backend, "--backend", {}),
                             one_of("unknown_backend", kBackends), std::move(backend));
}

Setting<int> Resolver::threads(std::string_view backend) const {
  const auto found = backend == "reference"
                         ? written(flags_.threads, "--threads", {})
                         : written(flags_.threads, "--threads", {"TOTO_NUM_THREADS"});
  return choose<int>(found, whole("invalid_threads", 1, kMaxThreads),
                     {available_cores(), {Source::built_in, "available cores"}});
}

Setting<std::uint64_t> Resolver::seed() const {
  return choose<std::uint64_t>(written(flags_.seed, "--seed", {"TOTO_SEED"}),
                               whole("invalid_seed", 0, kLargest), {0, {}});
}

Setting<std::string> Resolver::model() const {
  return choose<std::string>(written(flags_.model, "--model", {"TOTO_MODEL_ID"}), some_text(),
                             {"", {}});
}

Setting<CachePolicy> Resolver::plan_cache() const {
  return choose<CachePolicy>(written(flags_.plan_cache, "--plan-cache", {}),
                             one_of("invalid_setting", kCachePolicies), {CachePolicy::prefer, {}});
}

std::optional<Setting<std::string>> Resolver::named_plan_cache_dir() const {
  const auto found = written(flags_.plan_cache_dir, "--plan-cache-dir", {"TOTO_PLAN_CACHE_DIR"});
  if (!found) return std::nullopt;
  return choose<std::string>(found, some_text(), {});
}

// A relative XDG_CACHE_HOME is to be ignored, says the XDG Base Directory Specification.
Setting<std::string> Resolver::plan_cache_dir() const {
  if (auto named = named_plan_cache_dir()) return *std::move(named);
  const auto cache = variable("XDG_CACHE_HOME");
  if (cache && cache->starts_with('/')) {
    return {*cache + "/toto/plans", {Source::built_in, "in XDG_CACHE_HOME"}};
  }
  const auto home = variable("HOME");
  if (!home) return {"", {Source::built_in, "HOME is not set"}};
  return {*home + "/.cache/toto/plans", {}};
}

Setting<std::size_t> Resolver::max_plans() const {
  return choose<std::size_t>(written(flags_.max_plans, "--max-plans", {"TOTO_MAX_PLANS"}),
                             whole("invalid_setting", 1, kMaxPlans), {kDefaultMaxPlans, {}});
}

Setting<std::uint64_t> Resolver::memory_limit() const {
  const auto bytes =
      kind_of("invalid_setting",
              "a number of bytes such as 2000000000, 2GB, 512MiB, or 0 for no limit", read_bytes);
  return choose<std::uint64_t>(written(flags_.memory_limit, "--memory-limit", {}), bytes, {0, {}});
}

Setting<LogCategories> Resolver::log() const {
  const auto categories = kind_of(
      "invalid_setting",
      "some of " + list_words(kLogCategories) + " with commas between them, or all, or none",
      read_log);
  return choose<LogCategories>(written(flags_.log, "--log", {"TOTO_LOG"}), categories,
                               fallback(values_.log, LogCategories{}));
}

Setting<bool> Resolver::strict_counters() const {
  if (flags_.strict_counters) return {*flags_.strict_counters, {Source::flag, "--strict-counters"}};
  return fallback(values_.strict_counters, false);
}

Setting<bool> Resolver::deterministic_checks() const {
  if (flags_.deterministic_checks) {
    return {*flags_.deterministic_checks, {Source::flag, "--deterministic-checks"}};
  }
  return fallback(values_.deterministic_checks, false);
}

}  // namespace toto
