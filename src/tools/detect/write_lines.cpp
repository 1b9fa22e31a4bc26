// SPDX-License-Identifier: Apache-2.0
// Points as JSON lines.
#include <fmt/format.h>

#include "data/text_writer.h"
#include "toto/tools/detect.hpp"

namespace toto::detect {

void write_lines(const data::TextSink& sink, const Scored& scored, const data::TimeStyle& style,
                 const WriteOptions& options) {
  data::TextWriter out(sink);
  for (const Point& point : scored.points) {
    if (options.only_anomalies && !point.anomaly) continue;
    const auto number = [&](std::string_view key, double value) {
      const double offset = scored.value_offset;
      out.raw(", \"").raw(key).raw("\": ");
      out.number(offset, static_cast<float>(offset == 0 ? value : value - offset), "null");
    };
    out.raw("{\"id\": ").json_string(scored.id);
    if (!scored.variate.empty()) out.raw(", \"variate\": ").json_string(scored.variate);
    out.raw(", \"ds\": ").json_string(data::format_time(point.time, style));
    number("y", point.value);
    number("median", point.median);
    number("low", point.low);
    number("high", point.high);
    // p may be far below the smallest float.
    const double score = options.in_bits ? bits(point.p) : point.p;
    out.raw(", \"score\": ").raw(fmt::format("{:.6g}", score));
    out.raw(", \"anomaly\": ").raw(point.anomaly ? "true" : "false");
    if (options.synthetic) out.raw(", \"weights\": \"synthetic\"");
    out.raw("}\n");
  }
  out.finish();
}

}  // namespace toto::detect
