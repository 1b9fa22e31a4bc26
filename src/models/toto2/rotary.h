// SPDX-License-Identifier: Apache-2.0
// Rotary and xPos tables of Toto 2.0 (spec B7.4).
#pragma once

#include <cstdint>
#include <vector>

namespace toto::toto2 {

/// To be uploaded: angles, sines and cosines were rounded to float32, as the reference does.
struct RotaryTables {
  std::vector<double> cosine, sine;  // [positions][qk/4]
  std::vector<double> factor;        // [2*positions][qk/4]: base^((t - centre)/256), at
                                     // t - centre + positions; empty without xPos
};
RotaryTables rotary_tables(std::int32_t positions, std::int32_t qk, bool xpos);

}  // namespace toto::toto2
