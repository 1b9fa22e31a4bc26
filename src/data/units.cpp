// SPDX-License-Identifier: Apache-2.0
#include "data/units.h"

#include <algorithm>
#include <array>

namespace toto::data {
namespace {

struct Unit {
  std::string_view name;
  double size;
};

constexpr double kKibi = 1024.0;

constexpr std::array kCounts = {
    Unit{"", 1},     Unit{"K", 1e3},   Unit{"k", 1e3},   Unit{"M", 1e6},   Unit{"B", 1e9},
    Unit{"T", 1e12}, Unit{"Mil", 1e6}, Unit{"Bil", 1e9}, Unit{"Mio", 1e6}, Unit{"Mrd", 1e9},
    Unit{"bn", 1e9}, Unit{"m", 1e6},   Unit{"mn", 1e6}};
constexpr std::array kTimes = {Unit{"ns", 1e-9},   Unit{"µs", 1e-6},    Unit{"μs", 1e-6},
                               Unit{"us", 1e-6},   Unit{"ms", 1e-3},    Unit{"s", 1},
                               Unit{"sec", 1},     Unit{"secs", 1},     Unit{"min", 60},
                               Unit{"mins", 60},   Unit{"m", 60},       Unit{"h", 3600},
                               Unit{"hour", 3600}, Unit{"hours", 3600}, Unit{"d", 86400},
                               Unit{"day", 86400}, Unit{"days", 86400}};
constexpr std::array kBytes = {Unit{"B", 1},
                               Unit{"bytes", 1},
                               Unit{"kB", 1e3},
                               Unit{"KB", 1e3},
                               Unit{"MB", 1e6},
                               Unit{"GB", 1e9},
                               Unit{"TB", 1e12},
                               Unit{"PB", 1e15},
                               Unit{"KiB", kKibi},
                               Unit{"MiB", kKibi* kKibi},
                               Unit{"GiB", kKibi* kKibi* kKibi},
                               Unit{"TiB", kKibi* kKibi* kKibi* kKibi}};
constexpr std::array kBits = {Unit{"b", 1},      Unit{"bps", 1},    Unit{"kb", 1e3},
                              Unit{"kbps", 1e3}, Unit{"Kbps", 1e3}, Unit{"Mb", 1e6},
                              Unit{"Mbps", 1e6}, Unit{"Gb", 1e9},   Unit{"Gbps", 1e9}};
// In the order in which a unit that several of them have is looked for.
constexpr std::array<std::span<const Unit>, 4> kFamilies = {kCounts, kTimes, kBytes, kBits};

/// "MiB/s" is as much more than "B/s" as MiB is than B.
std::string_view without_rate(std::string_view unit) { return unit.substr(0, unit.find('/')); }
std::string_view rate_of(std::string_view unit) {
  const std::size_t slash = unit.find('/');
  return slash == unit.npos ? std::string_view() : unit.substr(slash);
}

std::optional<double> size_in(int family, std::string_view unit) {
  for (const Unit& one : kFamilies[static_cast<std::size_t>(family)]) {
    if (one.name == without_rate(unit)) return one.size;
  }
  return std::nullopt;
}

}  // namespace

bool ColumnUnit::settle(std::span<const std::string_view> seen) {
  if (seen.empty()) return true;
  const bool same = std::ranges::all_of(seen, [&](std::string_view one) { return one == seen[0]; });
  mixed_ = !same;
  name_ = seen[0];
  const auto belongs = [&](int family) {
    return std::ranges::all_of(seen, [&](std::string_view one) {
      return rate_of(one) == rate_of(seen[0]) && size_in(family, one).has_value();
    });
  };
  for (int family = 0; family < static_cast<int>(kFamilies.size()) && family_ < 0; ++family) {
    // A single "m" or "B" may be metres or bytes: only a mixture shows counts.
    if (family == 0 && same && (name_ == "m" || name_ == "B" || name_ == "T")) continue;
    if (belongs(family)) family_ = family;
  }
  if (family_ < 0) return same;
  if (family_ == 0) {
    name_ = rate_of(seen[0]);
  } else {
    size_ = *size_in(family_, name_);
  }
  return true;
}

std::optional<double> ColumnUnit::factor(std::string_view unit) const {
  if (unit == name_) return 1.0;
  if (family_ < 0 || rate_of(unit) != rate_of(name_)) return std::nullopt;
  const std::optional<double> size = size_in(family_, unit);
  if (!size) return std::nullopt;
  return *size / size_;
}

}  // namespace toto::data
