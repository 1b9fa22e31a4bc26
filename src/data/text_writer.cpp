// SPDX-License-Identifier: Apache-2.0
#include "data/text_writer.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>

#include "core/printable.h"
#include "core/utf8.h"
#include "data/value_offset.h"

namespace toto::data {
namespace {

constexpr std::size_t kPiece = std::size_t{1} << 16;

}  // namespace

TextWriter& TextWriter::raw(std::string_view text) {
  pending_.append(text);
  if (pending_.size() >= kPiece) finish();
  return *this;
}

void TextWriter::finish() {
  if (!pending_.empty()) sink_(pending_);
  pending_.clear();
}

TextWriter& TextWriter::integer(std::uint64_t value) {
  std::array<char, 24> digits{};
  const auto result = std::to_chars(digits.data(), digits.data() + digits.size(), value);
  return raw({digits.data(), static_cast<std::size_t>(result.ptr - digits.data())});
}

TextWriter& TextWriter::number(float value, std::string_view otherwise) {
  if (!std::isfinite(value)) return raw(otherwise);
  std::array<char, 32> digits{};
  const auto result = std::to_chars(digits.data(), digits.data() + digits.size(), value);
  return raw({digits.data(), static_cast<std::size_t>(result.ptr - digits.data())});
}

TextWriter& TextWriter::number(double offset, float value, std::string_view otherwise) {
  if (offset == 0 || !std::isfinite(value)) return number(value, otherwise);
  return raw(fmt::format("{}", with_offset(offset, value)));
}

TextWriter& TextWriter::csv_field(std::string_view text) {
  const bool plain = text.find_first_of(",;\t\"\r\n") == std::string_view::npos &&
                     !text.starts_with(' ') && !text.ends_with(' ');
  if (plain) return raw(text);
  raw("\"");
  for (const char c : text) raw(c == '"' ? "\"\"" : std::string_view(&c, 1));
  return raw("\"");
}

TextWriter& TextWriter::json_string(std::string_view text) {
  // Names of files are any bytes; JSON is UTF-8.
  if (first_invalid_utf8(text) != std::string_view::npos) {
    return json_string(to_utf8(printable(text)));
  }
  raw("\"");
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      raw("\\").raw({&c, 1});
    } else if (byte < 0x20) {
      raw(fmt::format("\\u{:04x}", byte));
    } else {
      raw({&c, 1});
    }
  }
  return raw("\"");
}

std::string level_text(double level) {
  std::array<char, 352> digits{};  // the smallest double has 324 decimal places
  const auto result =
      std::to_chars(digits.data(), digits.data() + digits.size(), level, std::chars_format::fixed);
  return {digits.data(), result.ptr};
}

void check_outputs(std::span<const TimeSeries> series, std::span<const Forecast> forecasts) {
  bool fit = series.size() == forecasts.size();
  for (std::size_t i = 0; fit && i < series.size(); ++i) {
    const Forecast& forecast = forecasts[i];
    const std::size_t values = forecast.variates * forecast.horizon;
    const auto has = [&](const std::vector<float>& array, std::size_t count) {
      return array.size() == count || array.empty();
    };
    fit = forecast.variates == series[i].variates.size() && forecast.mean.size() == values &&
          has(forecast.median, values) && has(forecast.point, values) &&
          has(forecast.std, values) && has(forecast.quantiles, forecast.levels.size() * values) &&
          has(forecast.samples, forecast.num_samples * values);
  }
  if (!fit) {
    throw Error(ExitStatus::internal, "internal", "the forecasts do not fit the series");
  }
}

}  // namespace toto::data
