// SPDX-License-Identifier: Apache-2.0
#include "engine/prepare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <string>

#include "core/philox.h"
#include "engine/check_finite.h"

namespace toto {
namespace {

constexpr std::size_t kMaxVariates = 65535;  // 16 bits of a draw's address
constexpr std::size_t kMaxSteps = 16 * 1024 * 1024;

[[noreturn]] void refuse(const Series& series, std::string_view code, const std::string& message,
                         std::string_view remedy = {}) {
  throw Error(ExitStatus::bad_data, code, message, fmt::format("series '{}'", series.id), remedy);
}

void check_sizes(const Series& s, std::size_t horizon) {
  if (s.variates == 0 || s.variates > kMaxVariates || s.steps == 0 || s.steps > kMaxSteps) {
    refuse(s, "invalid_series",
           fmt::format("expected 1 to {} variates and 1 to {} steps, found {} and {}", kMaxVariates,
                       kMaxSteps, s.variates, s.steps));
  }
  const std::size_t cells = s.variates * s.steps;
  if (s.values.size() != cells) {
    refuse(s, "invalid_series",
           fmt::format("expected {} values, found {}", cells, s.values.size()));
  }
  if (!s.mask.empty() && s.mask.size() != cells) {
    refuse(s, "invalid_series",
           fmt::format("expected a mask of {}, found {}", cells, s.mask.size()));
  }
  if (!s.groups.empty() && s.groups.size() != cells && s.groups.size() != s.variates) {
    refuse(
        s, "invalid_series",
        fmt::format("expected {} or {} group ids, found {}", s.variates, cells, s.groups.size()));
  }
  if (s.exogenous >= s.variates) {
    refuse(s, "invalid_series",
           fmt::format("expected fewer covariates than the {} variates, found {}", s.variates,
                       s.exogenous));
  }
  const std::size_t future = s.future_exogenous.size();
  if (future != 0 && future != s.exogenous * horizon) {
    refuse(s, "invalid_series",
           fmt::format("expected {} future covariate values ({} covariates, horizon {}), found {}",
                       s.exogenous * horizon, s.exogenous, horizon, future));
  }
  if (!s.future_mask.empty() && s.future_mask.size() != future) {
    refuse(s, "invalid_series",
           fmt::format("expected a mask of {} future covariate values, found {}", future,
                       s.future_mask.size()));
  }
  if (!s.value_offsets.empty() && s.value_offsets.size() != s.variates) {
    refuse(s, "invalid_series",
           fmt::format("expected {} value offsets, found {}", s.variates, s.value_offsets.size()));
  }
}

void check_values(const Series& s) {
  check_finite(s.id, s.values, s.steps, s.future_exogenous);
  if (!std::ranges::all_of(s.value_offsets, [](double x) { return std::isfinite(x); })) {
    refuse(s, "not_finite", "a value offset is not a finite number");
  }
  const bool observed =
      s.mask.empty() || std::any_of(s.mask.begin(), s.mask.end(), [](auto m) { return m != 0; });
  if (!observed) refuse(s, "no_observations", "every value is missing");
}

/// How the steps of a series lie in whole patches.
struct Cut {
  std::size_t from;  // steps dropped in front
  std::size_t pad;   // steps put in front
  std::size_t tokens;
};

Cut cut_of(const Series& s, std::size_t patch, Align align) {
  const std::size_t from = align == Align::trim && s.steps >= patch ? s.steps % patch : 0;
  const std::size_t kept = s.steps - from;
  const std::size_t tokens = (kept + patch - 1) / patch;
  return {from, tokens * patch - kept, tokens};
}

/// The id of step t of the cut series; padding repeats the first id (spec A3).
std::int32_t id_at(const Series& s, const Cut& cut, std::size_t v, std::size_t t) {
  if (s.groups.empty()) return 0;
  if (s.groups.size() == s.variates) return s.groups[v];
  return s.groups[v * s.steps + (t < cut.pad ? 0 : cut.from + t - cut.pad)];
}

void check_ids(const Series& s, const Cut& cut, std::size_t patch) {
  if (s.groups.size() <= s.variates) return;
  for (std::size_t v = 0; v < s.variates; ++v) {
    for (std::size_t t = 0; t < cut.tokens * patch; ++t) {
      if (id_at(s, cut, v, t) == id_at(s, cut, v, t / patch * patch)) continue;
      refuse(
          s, "invalid_series",
          fmt::format("the group id of variate {} changes inside a patch of {} steps", v, patch));
    }
  }
}

void cut_covariates(const Series& s, std::size_t patch, std::size_t horizon, Prepared& out) {
  out.covariates.clear();
  out.covariate_mask.clear();
  if (s.future_exogenous.empty()) return;
  const std::size_t patches = (horizon + patch - 1) / patch;
  out.covariates.assign(patches * s.exogenous * patch, 0.0F);
  if (!s.future_mask.empty()) out.covariate_mask.assign(out.covariates.size(), 0);
  for (std::size_t e = 0; e < s.exogenous; ++e) {
    for (std::size_t t = 0; t < horizon; ++t) {
      const std::size_t to = (t / patch * s.exogenous + e) * patch + t % patch;
      const std::size_t from = e * horizon + t;
      out.covariates[to] = s.future_exogenous[from];
      if (!s.future_mask.empty()) out.covariate_mask[to] = s.future_mask[from] != 0 ? 1 : 0;
    }
  }
}

}  // namespace

std::int32_t context_tokens(const Series& series, std::int32_t patch, Align align) {
  return static_cast<std::int32_t>(cut_of(series, static_cast<std::size_t>(patch), align).tokens);
}

void check_series(const Series& series, std::int32_t patch, Align align, std::size_t horizon) {
  check_sizes(series, horizon);
  check_values(series);
  const auto width = static_cast<std::size_t>(patch);
  check_ids(series, cut_of(series, width, align), width);
}

void prepare(const Series& series, std::int32_t patch_size, Align align, std::size_t horizon,
             Prepared& out) {
  const auto patch = static_cast<std::size_t>(patch_size);
  const Cut cut = cut_of(series, patch, align);
  const std::size_t kept = series.steps - cut.from;

  out.variates = static_cast<std::int32_t>(series.variates);
  out.tokens = static_cast<std::int32_t>(cut.tokens);
  out.exogenous = static_cast<std::int32_t>(series.exogenous);
  out.key = series_key(series.id);
  out.values.resize(series.variates * cut.tokens * patch);
  out.mask.resize(out.values.size());
  out.ids.resize(series.variates * cut.tokens);
  for (std::size_t v = 0; v < series.variates; ++v) {
    const auto pad = static_cast<std::ptrdiff_t>(cut.pad);
    const auto target = static_cast<std::ptrdiff_t>(v * cut.tokens * patch) + pad;
    std::fill_n(out.values.begin() + (target - pad), pad, 0.0F);
    std::fill_n(out.mask.begin() + (target - pad), pad, std::uint8_t{0});
    const auto source = static_cast<std::ptrdiff_t>(v * series.steps + cut.from);
    const auto count = static_cast<std::ptrdiff_t>(kept);
    std::copy_n(series.values.begin() + source, count, out.values.begin() + target);
    if (series.mask.empty()) {
      std::fill_n(out.mask.begin() + target, count, std::uint8_t{1});
    } else {
      std::transform(series.mask.begin() + source, series.mask.begin() + source + count,
                     out.mask.begin() + target,
                     [](std::uint8_t m) { return static_cast<std::uint8_t>(m != 0); });
    }
    for (std::size_t token = 0; token < cut.tokens; ++token) {
      out.ids[v * cut.tokens + token] = id_at(series, cut, v, token * patch);
    }
  }
  cut_covariates(series, patch, horizon, out);
}

}  // namespace toto
