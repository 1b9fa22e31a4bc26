// SPDX-License-Identifier: Apache-2.0
#include "toto/tools/plot.hpp"

namespace toto::plot {

std::vector<BandLevels> default_bands() {
  return {{0.5, 0.25, 0.75}, {0.8, 0.1, 0.9}, {0.95, 0.025, 0.975}};
}

std::vector<BandLevels> default_bands(const ModelInfo& model) {
  std::vector<BandLevels> bands = default_bands();
  std::erase_if(bands, [&](const BandLevels& band) {
    return !model.knows(band.lower) || !model.knows(band.upper);
  });
  return bands;
}

}  // namespace toto::plot
