// SPDX-License-Identifier: Apache-2.0
// The file of parameters: {"format": "toto-parameters", "version": 1, "symbols": {NAME: {...}}}.
#include <fmt/format.h>

#include <array>
#include <cmath>

#include "core/input_file.h"
#include "core/json.h"
#include "tools/backtest/aggregate.h"
#include "tools/backtest/check.h"
#include "toto/tools/backtest.hpp"

namespace toto::backtest {
namespace {

constexpr std::size_t kMaxBytes = std::size_t{64} << 20;

class Reader {
 public:
  explicit Reader(const std::string& path) : path_(path) {}

  std::map<std::string, Parameters, std::less<>> read() {
    const std::string text = read_text_file(path_, kMaxBytes, ExitStatus::bad_data);
    const JsonTree tree{parse_json(text, ExitStatus::bad_data, path_)};
    const nlohmann::json& all = tree.root;
    if (!all.is_object() || all.value("format", nlohmann::json()) != "toto-parameters" ||
        all.value("version", nlohmann::json()) != 1) {
      refuse(
          "is no file of parameters of this version: expected \"format\": \"toto-parameters\" "
          "and \"version\": 1");
    }
    const auto symbols = all.find("symbols");
    if (symbols == all.end() || !symbols->is_object()) refuse("has no object \"symbols\"");
    std::map<std::string, Parameters, std::less<>> found;
    for (const auto& [name, value] : symbols->items()) found[name] = one(name, value);
    return found;
  }

 private:
  [[noreturn]] void refuse(const std::string& message) const {
    throw Error(ExitStatus::bad_data, "invalid_parameters", message, path_,
                "write it with toto tune");
  }

  std::size_t whole(const std::string& name, const nlohmann::json& value, const char* key,
                    std::uint64_t most) const {
    const auto found = value.find(key);
    if (found == value.end() || !found->is_number_unsigned() || found->get<std::uint64_t>() < 1 ||
        found->get<std::uint64_t>() > most) {
      refuse(
          fmt::format("{}: expected a whole number from 1 to {} for {}", quote(name), most, key));
    }
    return found->get<std::size_t>();
  }

  /// 1 in files that were written before there were widths.
  double width(const std::string& name, const nlohmann::json& value, const char* key) const {
    const auto found = value.find(key);
    if (found == value.end()) return 1;
    constexpr double kMost = 1000;
    if (!found->is_number() || !(found->get<double>() >= 0 && found->get<double>() <= kMost)) {
      refuse(fmt::format("{}: expected a number from 0 to {} for {}", quote(name), kMost, key));
    }
    return found->get<double>();
  }

  Parameters one(const std::string& name, const nlohmann::json& value) const {
    if (!value.is_object()) refuse(fmt::format("{}: expected an object", quote(name)));
    Parameters p;
    p.context = whole(name, value, "context", 10'000'000);
    p.samples = whole(name, value, "samples", 65'536);
    const auto transform = value.find("transform");
    bool known = false;
    for (const Transform t : {Transform::none, Transform::pct, Transform::log_return}) {
      if (transform == value.end() || *transform != std::string(word(t))) continue;
      p.transform = t;
      known = true;
    }
    if (!known)
      refuse(fmt::format("{}: expected none, pct or log-return for transform", quote(name)));
    const auto scale = value.find("input_scale");
    const bool automatic = scale != value.end() && *scale == "automatic";
    if (!automatic &&
        (scale == value.end() || !scale->is_number() ||
         !(scale->get<double>() >= kMinInputScale && scale->get<double>() <= kMaxInputScale))) {
      refuse(
          fmt::format("{}: expected \"automatic\" or a number from 1e-12 to 1e12 for input_scale",
                      quote(name)));
    }
    p.input_scale = automatic ? 0 : scale->get<double>();
    p.width_below = width(name, value, "width_below");
    p.width_above = width(name, value, "width_above");
    const auto aggregate = value.find("aggregate");
    if (aggregate == value.end() || !aggregate->is_string()) {
      refuse(fmt::format("{}: expected a word for aggregate", quote(name)));
    }
    p.aggregate = aggregate->get<std::string>();
    try {
      (void)parse_aggregate(p.aggregate);
    } catch (const Error& error) {
      refuse(fmt::format("{}: {}", quote(name), error.message()));
    }
    return p;
  }

  const std::string& path_;
};

}  // namespace

std::map<std::string, Parameters, std::less<>> read_parameters(const std::string& path) {
  return Reader(path).read();
}

}  // namespace toto::backtest
