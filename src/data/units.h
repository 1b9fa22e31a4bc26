// SPDX-License-Identifier: Apache-2.0
// Units that programs write behind numbers, and what one is in terms of another.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace toto::data {

/// The units of one column.
class ColumnUnit {
 public:
  /// `seen` are the units of the first rows, "" for numbers without one. Fails where they do not go
  /// together.
  [[nodiscard]] bool settle(std::span<const std::string_view> seen);

  /// By what a number in `unit` is multiplied; nothing where it cannot be told in name().
  [[nodiscard]] std::optional<double> factor(std::string_view unit) const;

  /// Of the column's numbers; empty: plain numbers. Thousands and millions (K, M) become numbers.
  [[nodiscard]] const std::string& name() const { return name_; }
  /// Numbers of several units are brought to one.
  [[nodiscard]] bool mixed() const { return mixed_; }

 private:
  std::string name_;
  int family_ = -1;
  double size_ = 1.0;
  bool mixed_ = false;
};

}  // namespace toto::data
