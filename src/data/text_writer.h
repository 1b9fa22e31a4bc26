// SPDX-License-Identifier: Apache-2.0
// Text for a sink: collected in pieces, with numbers and strings written the one way we write them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "toto/tools/output.hpp"

namespace toto::data {

class TextWriter {
 public:
  explicit TextWriter(const TextSink& sink) : sink_(sink) {}

  TextWriter& raw(std::string_view text);
  TextWriter& integer(std::uint64_t value);
  /// The shortest digits that give the same float back; `otherwise` when it is not finite.
  TextWriter& number(float value, std::string_view otherwise);
  /// offset + value, with the digits that the value has (see with_offset).
  TextWriter& number(double offset, float value, std::string_view otherwise);
  /// Quoted where CSV needs it.
  TextWriter& csv_field(std::string_view text);
  /// Well-formed UTF-8 goes through; what JSON does not allow is escaped. Of other text the bytes
  /// that are not UTF-8 become U+FFFD.
  TextWriter& json_string(std::string_view text);
  void finish();

 private:
  const TextSink& sink_;
  std::string pending_;
};

/// The level as it stands in column names: the fewest digits that give it back, without an exponent
/// (0.1, 0.0005, 0.999999).
std::string level_text(double level);

/// Throws Error internal (70) unless every forecast fits its series.
void check_outputs(std::span<const TimeSeries> series, std::span<const Forecast> forecasts);

}  // namespace toto::data
