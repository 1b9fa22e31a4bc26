// SPDX-License-Identifier: Apache-2.0
#include "tools/verify/request.h"

#include "core/sha256.h"

namespace toto::verify {

Request request_for(const SuiteState& state, std::size_t patch) {
  Request r;
  const std::size_t steps = state.quick() ? 4 * patch : 16 * patch;
  r.owned = own_series(state, steps, state.quick() ? 8 : 64);
  r.series = views(r.owned);
  as_reference(r.options);
  r.options.horizon = patch + patch / 2 + 1;
  r.options.num_samples = kRequestSamples;
  r.options.keep_samples = true;
  r.options.keep_parameters = true;
  r.options.seed = state.options.seed;
  return r;
}

std::string bytes_of(const Forecast& f) {
  std::string bytes;
  const auto add = [&](std::span<const std::byte> part) {
    bytes.append(reinterpret_cast<const char*>(part.data()), part.size());
  };
  const Parameters& p = f.parameters;
  for (const auto* part :
       {&p.df, &p.loc, &p.scale, &p.probability, &p.affine_loc, &p.affine_scale}) {
    add(std::as_bytes(std::span(*part)));
  }
  for (const auto* part : {&f.mean, &f.median, &f.std, &f.quantiles, &f.samples}) {
    add(std::as_bytes(std::span(*part)));
  }
  return bytes;
}

std::vector<std::string> digests_of(Forecaster& forecaster, const Request& request,
                                    const std::vector<Forecast>& forecasts) {
  ForecastOptions options = request.options;
  options.keep_parameters = false;
  const std::vector<Forecast> plain = forecaster.forecast(request.series, options);
  std::vector<std::string> digests;
  for (std::size_t i = 0; i < forecasts.size(); ++i) {
    Sha256 hash;
    for (const Forecast* f : {&forecasts[i], &plain[i]}) {
      const std::string bytes = bytes_of(*f);
      hash.update(std::as_bytes(std::span(bytes)));
    }
    digests.push_back(hash.hex());
  }
  return digests;
}

std::vector<Variant> all_subjects(const SuiteState& state) {
  std::vector<Variant> variants = state.variants();
  variants.insert(variants.begin(), {Mode::eager, Precision::float32});
  return variants;
}

}  // namespace toto::verify
