// SPDX-License-Identifier: Apache-2.0
#include "options.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "errors.h"

namespace nb = nanobind;
using namespace nb::literals;  // NOLINT(google-build-using-namespace): "name"_a

namespace toto::python {
namespace {

template <typename T>
T choice(std::string_view given, std::initializer_list<std::pair<std::string_view, T>> words,
         std::string_view where) {
  std::string valid;
  for (const auto& [word, value] : words) {
    if (word == given) return value;
    valid += (valid.empty() ? "" : ", ") + fmt::format("\"{}\"", word);
  }
  refuse("invalid_choice", fmt::format("expected {}, found \"{}\"", valid, given), where);
}

std::uint64_t seed_of(const nb::object& given) {
  const nb::object number = nb::steal(PyNumber_Index(given.ptr()));
  if (!number.is_valid()) nb::raise_python_error();
  const std::uint64_t seed = PyLong_AsUnsignedLongLong(number.ptr());
  if (PyErr_Occurred() == nullptr) return seed;
  PyErr_Clear();
  refuse("invalid_seed", "expected a whole number of 0 to 2^64 - 1, found " + text_of(number),
         "seed");
}

std::size_t whole(std::int64_t given, const char* code, const char* where) {
  if (given >= 0) return static_cast<std::size_t>(given);
  refuse(code, fmt::format("expected a number of at least 0, found {}", given), where);
}

}  // namespace

void bind_options(nb::module_& module) {
  nb::class_<Options>(module, "Options", "Options of a forecast, checked when it is computed.")
      .def(
          "__init__",
          [](Options* self, std::int64_t horizon, std::vector<double> quantiles,
             std::int64_t num_samples, bool keep_samples, bool keep_parameters, bool mean_only,
             const nb::object& seed, const std::string& decode, const std::string& quantiles_from,
             const std::string& paths, const std::string& align, const std::string& missing,
             std::int64_t context, std::int64_t decode_block_size, bool has_missing_values,
             std::int64_t scaler_fallback_min_obs, double quantile_real_cap_k, bool across_missing,
             double input_scale, double clamp, std::optional<double> minimum,
             std::optional<double> maximum, bool integer, bool reference,
             const std::string& covariates_by, const std::string& tails, bool value_offset,
             const std::string& views, std::int64_t season) {
            Options own;
            ForecastOptions& f = own.forecast;
            f.horizon = whole(horizon, "invalid_horizon", "horizon");
            std::sort(quantiles.begin(), quantiles.end());
            quantiles.erase(std::unique(quantiles.begin(), quantiles.end()), quantiles.end());
            f.levels = std::move(quantiles);
            f.num_samples = whole(num_samples, "invalid_samples", "num_samples");
            f.keep_samples = keep_samples;
            f.keep_parameters = keep_parameters;
            f.mean_only = mean_only;
            if (!seed.is_none()) f.seed = seed_of(seed);
            f.decode = choice<Decode>(
                decode, {{"cached", Decode::cached}, {"uncached", Decode::uncached}}, "decode");
            f.quantiles_from = choice<QuantilesFrom>(
                quantiles_from,
                {{"auto", QuantilesFrom::automatic}, {"samples", QuantilesFrom::samples}},
                "quantiles_from");
            f.paths = choice<Paths>(paths,
                                    {{"auto", Paths::automatic},
                                     {"independent", Paths::independent},
                                     {"coherent", Paths::coherent}},
                                    "paths");
            f.align = choice<Align>(align, {{"pad", Align::pad}, {"trim", Align::trim}}, "align");
            own.missing = choice<data::Missing>(missing,
                                                {{"ffill", data::Missing::ffill},
                                                 {"linear", data::Missing::linear},
                                                 {"zero", data::Missing::zero},
                                                 {"seasonal", data::Missing::seasonal},
                                                 {"model", data::Missing::model},
                                                 {"error", data::Missing::error}},
                                                "missing");
            f.gaps_by_model = own.missing == data::Missing::model;
            own.season = whole(season, "invalid_season", "season");
            own.context = whole(context, "invalid_context", "context");
            f.decoding.decode_block_size =
                whole(decode_block_size, "invalid_block", "decode_block_size");
            f.decoding.has_missing_values = has_missing_values;
            f.decoding.scaler_fallback_min_obs =
                whole(scaler_fallback_min_obs, "invalid_fallback", "scaler_fallback_min_obs");
            f.decoding.quantile_real_cap_k = quantile_real_cap_k;
            f.across_missing = across_missing;
            f.input_scale = input_scale;
            f.guards.clamp = clamp;
            if (minimum) f.guards.min = *minimum;
            if (maximum) f.guards.max = *maximum;
            f.guards.integer = integer;
            f.tails = choice<Tails>(tails,
                                    {{"auto", Tails::automatic},
                                     {"clamp", Tails::clamp},
                                     {"exponential", Tails::exponential},
                                     {"normal", Tails::normal}},
                                    "tails");
            f.views = parse_views(views);
            if (reference) as_reference(f);
            own.value_offset = value_offset && !reference;
            own.covariates_by = choice<CovariatesBy>(covariates_by,
                                                     {{"auto", CovariatesBy::automatic},
                                                      {"model", CovariatesBy::model},
                                                      {"regress", CovariatesBy::regress}},
                                                     "covariates_by");
            new (self) Options(std::move(own));
          },
          "horizon"_a, "quantiles"_a, nb::kw_only(), "num_samples"_a = 256, "samples"_a = false,
          "parameters"_a = false, "mean_only"_a = false, "seed"_a = nb::none(),
          "decode"_a = "cached", "quantiles_from"_a = "auto", "paths"_a = "auto", "align"_a = "pad",
          "missing"_a = "ffill", "context"_a = 4096, "decode_block_size"_a = 0,
          "has_missing_values"_a = true, "scaler_fallback_min_obs"_a = 0,
          "quantile_real_cap_k"_a = 0.0, "across_missing"_a = true, "input_scale"_a = 0.0,
          "clamp"_a = 4.0, "minimum"_a = nb::none(), "maximum"_a = nb::none(), "integer"_a = false,
          "as_reference"_a = false, "covariates_by"_a = "auto", "tails"_a = "auto",
          "value_offset"_a = true, "views"_a = "", "season"_a = 0)
      .def_prop_ro("horizon", [](const Options& own) { return own.forecast.horizon; });
}

}  // namespace toto::python
