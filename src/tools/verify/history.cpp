// SPDX-License-Identifier: Apache-2.0
#include "tools/verify/history.h"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/input_file.h"
#include "core/json.h"

namespace toto::verify {
namespace {

using nlohmann::ordered_json;

constexpr const char* kFormat = "toto-forecasts 1";
constexpr std::uint64_t kMaxSize = 1 << 20;  // of each dimension: their product fits 64 bits
constexpr std::size_t kMaxBytes = std::size_t{1} << 30;

struct Part {
  const char* name;
  std::vector<double> Parameters::*values;
  bool components;  // [V][H][K], else [V][H]
};
constexpr Part kParts[] = {{"df", &Parameters::df, true},
                           {"loc", &Parameters::loc, true},
                           {"scale", &Parameters::scale, true},
                           {"probability", &Parameters::probability, true},
                           {"affine_loc", &Parameters::affine_loc, false},
                           {"affine_scale", &Parameters::affine_scale, false}};

[[noreturn]] void malformed(const std::string& path, const std::string& message) {
  throw Error(ExitStatus::bad_data, "invalid_history", message, path,
              "it is a file that toto verify --record has written");
}

/// A number that is not whole would be converted, which is undefined beyond the range.
std::size_t whole(const nlohmann::json& json, const char* key, const std::string& path) {
  const nlohmann::json& value = json.at(key);
  if (!value.is_number_unsigned() || value.get<std::uint64_t>() > kMaxSize) {
    malformed(path, std::string(key) + " is not a whole number");
  }
  return value.get<std::size_t>();
}

RecordedSeries read_series(const nlohmann::json& json, const std::string& path) {
  RecordedSeries s;
  s.id = json.at("id").get<std::string>();
  s.input = json.at("input").get<std::string>();
  s.variates = whole(json, "variates", path);
  s.horizon = whole(json, "horizon", path);
  s.parameters.components = whole(json, "components", path);
  const std::size_t cells = s.variates * s.horizon;
  for (const Part& part : kParts) {
    s.parameters.*part.values = json.at(part.name).get<std::vector<double>>();
    if ((s.parameters.*part.values).size() !=
        (part.components ? cells * s.parameters.components : cells)) {
      malformed(path, std::string("the length of ") + part.name + " does not fit the sizes");
    }
  }
  if (json.contains("quantiles")) {
    s.quantiles = json["quantiles"].get<std::vector<double>>();
    if (cells == 0 || s.quantiles.size() % cells != 0) {
      malformed(path, "the length of quantiles does not fit the sizes");
    }
  }
  return s;
}

}  // namespace

std::string encode_history(const History& history) {
  ordered_json settings = ordered_json::array();
  for (const auto& [name, value] : history.settings) {
    settings.push_back({{"name", name}, {"value", value}});
  }
  ordered_json series = ordered_json::array();
  for (const RecordedSeries& s : history.series) {
    ordered_json one = {{"id", s.id},
                        {"input", s.input},
                        {"variates", s.variates},
                        {"horizon", s.horizon},
                        {"components", s.parameters.components}};
    for (const Part& part : kParts) one[part.name] = s.parameters.*part.values;
    if (!s.quantiles.empty()) one["quantiles"] = s.quantiles;
    series.push_back(std::move(one));
  }
  const ordered_json all = {{"format", kFormat},      {"program", history.program},
                            {"model", history.model}, {"model_hash", history.model_hash},
                            {"settings", settings},   {"series", series}};
  return all.dump(1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

History read_history(const std::string& path) {
  const JsonTree tree{parse_json(read_text_file(path, kMaxBytes, ExitStatus::bad_data),
                                 ExitStatus::bad_data, path)};
  const nlohmann::json& json = tree.root;
  History history;
  try {
    if (json.at("format") != kFormat) malformed(path, "another format");
    history.program = json.at("program").get<std::string>();
    history.model = json.at("model").get<std::string>();
    history.model_hash = json.at("model_hash").get<std::string>();
    for (const nlohmann::json& line : json.at("settings")) {
      history.settings.emplace_back(line.at("name").get<std::string>(),
                                    line.at("value").get<std::string>());
    }
    for (const nlohmann::json& one : json.at("series")) {
      history.series.push_back(read_series(one, path));
    }
  } catch (const nlohmann::json::exception& error) {
    malformed(path, error.what());
  }
  return history;
}

Drift drift(const RecordedSeries& now, const RecordedSeries& before) {
  constexpr double kNone = std::numeric_limits<double>::infinity();
  Drift d;
  const std::size_t k = before.parameters.components;
  if (now.variates != before.variates || now.horizon != before.horizon ||
      now.parameters.components != k || now.quantiles.size() != before.quantiles.size()) {
    return {kNone, 0, 0};
  }
  const auto compare = [&](double a, double b, double unit, std::size_t cell) {
    double error = std::abs(a - b) / (unit + std::abs(b));
    if (!std::isfinite(error)) error = kNone;
    if (error > d.largest) d = {error, cell / before.horizon, cell % before.horizon};
  };
  for (const Part& part : kParts) {
    const std::vector<double>& a = now.parameters.*part.values;
    const std::vector<double>& b = before.parameters.*part.values;
    for (std::size_t i = 0; i < b.size(); ++i) {
      const std::size_t cell = part.components ? i / k : i;
      // Scaled parameters are in units of the scale already; the scaler's own are not.
      const double unit = part.components ? 1 : before.parameters.affine_scale[cell];
      compare(a[i], b[i], unit, cell);
    }
  }
  const std::size_t cells = before.variates * before.horizon;
  for (std::size_t i = 0; i < before.quantiles.size(); ++i) {
    const std::size_t cell = i % cells;
    compare(now.quantiles[i], before.quantiles[i], before.parameters.affine_scale[cell], cell);
  }
  return d;
}

}  // namespace toto::verify
