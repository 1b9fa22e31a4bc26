// SPDX-License-Identifier: Apache-2.0
#include "forecast/prepare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "core/philox.h"

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
}

void check_values(const Series& s) {
  for (std::size_t i = 0; i < s.values.size(); ++i) {
    if (!std::isfinite(s.values[i])) {
      refuse(s, "not_finite",
             fmt::format("variate {}, step {} is not a finite number", i / s.steps, i % s.steps),
             "fill missing values and set their mask to 0");
    }
  }
  for (std::size_t i = 0; i < s.future_exogenous.size(); ++i) {
    if (!std::isfinite(s.future_exogenous[i]))
      refuse(s, "not_finite", "a future covariate is not a finite number");
  }
  const bool observed =
      s.mask.empty() || std::any_of(s.mask.begin(), s.mask.end(), [](auto m) { return m != 0; });
  if (!observed) refuse(s, "no_observations", "every value is missing");
}

/// Group id of every token; ids must be constant inside a patch (spec A3). `pad`: steps put in
/// front.
void cut_ids(const Series& s, std::size_t from, std::size_t pad, std::size_t patch, Prepared& out) {
  out.ids.assign(static_cast<std::size_t>(out.variates) * static_cast<std::size_t>(out.tokens), 0);
  if (s.groups.empty()) return;
  const auto tokens = static_cast<std::size_t>(out.tokens);
  for (std::size_t v = 0; v < s.variates; ++v) {
    if (s.groups.size() == s.variates) {
      std::fill_n(out.ids.begin() + static_cast<std::ptrdiff_t>(v * tokens), tokens, s.groups[v]);
      continue;
    }
    for (std::size_t t = 0; t < tokens * patch; ++t) {
      const std::int32_t id = s.groups[v * s.steps + from + (t < pad ? 0 : t - pad)];
      std::int32_t& token = out.ids[v * tokens + t / patch];
      if (t % patch == 0) token = id;
      if (token != id) {
        refuse(
            s, "invalid_series",
            fmt::format("the group id of variate {} changes inside a patch of {} steps", v, patch));
      }
    }
  }
}

void cut_covariates(const Series& s, std::size_t patch, std::size_t horizon, Prepared& out) {
  out.covariates.clear();
  if (s.future_exogenous.empty()) return;
  const std::size_t patches = (horizon + patch - 1) / patch;
  out.covariates.assign(patches * s.exogenous * patch, 0.0F);
  for (std::size_t e = 0; e < s.exogenous; ++e) {
    for (std::size_t t = 0; t < horizon; ++t) {
      out.covariates[(t / patch * s.exogenous + e) * patch + t % patch] =
          s.future_exogenous[e * horizon + t];
    }
  }
}

}  // namespace

void prepare(const Series& series, std::int32_t patch_size, Align align, std::size_t horizon,
             Prepared& out) {
  check_sizes(series, horizon);
  check_values(series);
  const auto patch = static_cast<std::size_t>(patch_size);
  std::size_t from = 0;  // steps dropped in front
  if (align == Align::trim && series.steps >= patch) from = series.steps % patch;
  const std::size_t kept = series.steps - from;
  const std::size_t tokens = (kept + patch - 1) / patch;
  const std::size_t pad = tokens * patch - kept;

  out.variates = static_cast<std::int32_t>(series.variates);
  out.tokens = static_cast<std::int32_t>(tokens);
  out.exogenous = static_cast<std::int32_t>(series.exogenous);
  out.key = series_key(series.id);
  out.values.assign(series.variates * tokens * patch, 0.0F);
  out.mask.assign(out.values.size(), 0);
  for (std::size_t v = 0; v < series.variates; ++v) {
    const auto target = static_cast<std::ptrdiff_t>(v * tokens * patch + pad);
    const auto source = static_cast<std::ptrdiff_t>(v * series.steps + from);
    const auto count = static_cast<std::ptrdiff_t>(kept);
    std::copy_n(series.values.begin() + source, count, out.values.begin() + target);
    if (series.mask.empty()) {
      std::fill_n(out.mask.begin() + target, count, std::uint8_t{1});
    } else {
      std::transform(series.mask.begin() + source, series.mask.begin() + source + count,
                     out.mask.begin() + target,
                     [](std::uint8_t m) { return static_cast<std::uint8_t>(m != 0); });
    }
  }
  cut_ids(series, from, pad, patch, out);
  cut_covariates(series, patch, horizon, out);
}

}  // namespace toto
