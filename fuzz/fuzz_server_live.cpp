// SPDX-License-Identifier: Apache-2.0
// Any bytes as the body of a live series or of points, as a query, as a series' name, as a
// database: refused with an Error, or a series whose parts fit together and that can be forecast.
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string_view>

#include "server/live.h"
#include "server/query.h"

namespace {

using namespace toto;
using namespace toto::server;

void require(bool holds) {
  if (!holds) std::abort();
}

Limits limits() {
  Limits limits;
  limits.context = 16;
  limits.max_variates = 8;
  limits.max_horizon = 20;
  return limits;
}

void use(const LiveSeries& series, const std::string& query) {
  require(series.variates >= 1 && series.rows.size() % series.variates == 0);
  require(series.steps() <= limits().context && series.steps() <= series.count);
  require(nlohmann::json::accept(describe(series, 5)));
  HttpRequest request;
  request.query = query;
  ParsedCall parsed = parse_live_forecast(request, series, limits());
  const SeriesInput& input = parsed.call.inputs.at(0);
  require(input.values.size() == input.steps * input.targets && input.steps > 0);
  require(input.options.horizon >= 1 && input.options.horizon <= limits().max_horizon);
}

void use_bodies(const std::string& body, const std::string& more) {
  LiveSeries series = parse_series("a", body, limits());
  const Points points = parse_points(more, limits());
  require(points.rows.size() % points.variates == 0 && !points.rows.empty());
  if (points.variates != series.variates) return;
  const std::uint64_t before = series.count;
  series.append(points.rows, limits().context);
  require(series.count == before + points.rows.size() / points.variates);
  use(series, "");
}

void use_query(const std::string& query) {
  LiveSeries series = parse_series("a", R"({"values": [1, 2, 3]})", limits());
  require(options_of(parse_query(query)).is_object());
  use(series, query);
}

void use_file(std::string_view bytes) {
  static const std::string path = "/tmp/fuzz_server_live." + std::to_string(getpid());
  for (const char* end : {"", "-wal", "-shm"}) ::unlink((path + end).c_str());
  std::ofstream(path, std::ios::binary) << bytes;
  LiveDatabase database(path);
  for (const LiveSeries& one : database.load(16)) {
    require(one.rows.size() % one.variates == 0 && one.steps() <= 16);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  if (size < 2) return 0;
  const std::string text(reinterpret_cast<const char*>(bytes) + 1, size - 1);
  try {
    switch (bytes[0] % 4) {
      case 0: {
        const std::size_t cut = text.find('\n');
        use_bodies(text.substr(0, cut), cut == std::string::npos ? text : text.substr(cut + 1));
        break;
      }
      case 1:
        use_query(text);
        break;
      case 2:
        check_series_id(text);
        require(nlohmann::json::accept(describe(parse_series(text, "", limits()), 1)));
        break;
      default:
        use_file(text);
    }
  } catch (const Error& error) {
    require(error.code() != "internal" && !error.code().empty());
    require(std::string_view(error.what()).find('\n') == std::string_view::npos);
  }
  return 0;
}
