// SPDX-License-Identifier: Apache-2.0
// Any bytes as generation_config.json: refused with an Error, or words that forecasts know.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "models/checkpoint/model_defaults.h"
#include "toto/error.hpp"

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(bytes), size);
  try {
    const toto::ModelDefaults defaults = toto::parse_model_defaults(text, "input");
    require(defaults.paths == toto::Paths::independent || defaults.paths == toto::Paths::coherent);
    require(defaults.tails == toto::Tails::clamp || defaults.tails == toto::Tails::normal ||
            defaults.tails == toto::Tails::exponential);
  } catch (const toto::Error& error) {
    require(error.status() == toto::ExitStatus::bad_config && !error.code().empty());
    require(std::string_view(error.what()).find('\n') == std::string_view::npos);
  }
  return 0;
}
