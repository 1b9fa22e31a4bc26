// SPDX-License-Identifier: Apache-2.0
#include "data/order.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <span>
#include <vector>

namespace toto::data {
namespace {

using Order = std::vector<std::size_t>;  // rows of the group as they stand in the file

/// Times of a group, and the same from old to new: groups that share the first share the second.
struct Turned {
  Times from, to;
};

class Sorter {
 public:
  /// `shared`: what the group before was turned to; null where groups share no times.
  Sorter(RowGroup& group, std::size_t width, Turned* shared)
      : group_(group), width_(width), shared_(shared) {}

  [[nodiscard]] bool increases() const {
    return std::ranges::adjacent_find(group_.times, std::greater_equal{}) == group_.times.end();
  }

  /// Sets what was done in `out`; false where two rows of one time are refused.
  bool sort(Duplicates duplicates, bool keep_all, Ordered& out) {
    if (std::ranges::adjacent_find(group_.times, std::less_equal{}) == group_.times.end()) {
      ++out.turned;
      turn();
      return true;
    }
    Order order(group_.times.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    const bool falls = std::ranges::adjacent_find(group_.times, std::less{}) == group_.times.end();
    const bool rises = std::ranges::is_sorted(group_.times);
    if (!rises) {
      ++(falls ? out.turned : out.sorted);
      std::ranges::stable_sort(order, {}, [&](std::size_t row) { return group_.times[row]; });
    }
    if (keep_all) {
      if (!rises) apply(order);
      return true;
    }
    std::size_t kept = 0;  // of `order`, in place
    for (std::size_t i = 0; i < order.size();) {
      std::size_t end = i + 1;
      while (end < order.size() && group_.times[order[end]] == group_.times[order[i]]) ++end;
      const std::span<const std::size_t> same = std::span(order).subspan(i, end - i);
      if (!merge(same, duplicates, out)) return false;
      order[kept++] = duplicates == Duplicates::last ? same.back() : same.front();
      i = end;
    }
    order.resize(kept);
    apply(order);
    return true;
  }

 private:
  [[nodiscard]] std::span<float> row(std::size_t i) const {
    return std::span(group_.values).subspan(i * width_, width_);
  }

  [[nodiscard]] bool equal(std::size_t a, std::size_t b) const {
    return std::ranges::equal(row(a), row(b), [](float x, float y) {
      return x == y || (std::isnan(x) && std::isnan(y));
    });
  }

  /// Newest first, and no time twice: where they lie, without room for a second copy.
  void turn() {
    turn_times();
    std::ranges::reverse(group_.offsets);
    for (std::vector<float>* const all : {&group_.values, &group_.low}) {
      const std::size_t rows = all->size() / width_;
      for (std::size_t i = 0; i < rows / 2; ++i) {
        const auto low = all->begin() + static_cast<std::ptrdiff_t>(i * width_);
        const auto high = all->end() - static_cast<std::ptrdiff_t>((i + 1) * width_);
        std::swap_ranges(low, low + static_cast<std::ptrdiff_t>(width_), high);
      }
    }
  }

  void turn_times() {
    if (shared_ != nullptr && group_.times.shares(shared_->from)) {
      group_.times = shared_->to;
      return;
    }
    if (shared_ != nullptr) shared_->from = group_.times;
    std::ranges::reverse(group_.times.edit());
    if (shared_ != nullptr) shared_->to = group_.times;
  }

  bool merge(std::span<const std::size_t> same, Duplicates duplicates, Ordered& out) {
    std::size_t different = 0;
    for (const std::size_t one : same.subspan(1)) {
      const bool is_equal = equal(same[0], one);
      ++(is_equal ? out.identical : out.merged);
      group_.repeated += is_equal ? 1 : 0;
      if (is_equal) continue;
      if (duplicates == Duplicates::error) {
        out.refused = true;
        out.first_row = same[0];
        out.second_row = one;
        out.time = group_.times[one];
        return false;
      }
      ++different;
    }
    if (different > 0 && duplicates == Duplicates::mean) average(same);
    return true;
  }

  /// Into the first row, of what is there.
  void average(std::span<const std::size_t> same) {
    for (std::size_t column = 0; column < width_; ++column) {
      double sum = 0.0;
      std::size_t count = 0;
      for (const std::size_t one : same) {
        const float value = row(one)[column];
        if (std::isnan(value)) continue;
        sum += value;
        ++count;
      }
      if (count > 0) row(same[0])[column] = static_cast<float>(sum / static_cast<double>(count));
    }
  }

  void apply(const Order& kept) {
    std::vector<std::int64_t> times(kept.size());
    std::vector<std::int16_t> offsets(group_.offsets.empty() ? 0 : kept.size());
    std::vector<float> values(kept.size() * width_);
    std::vector<float> low(group_.low.empty() ? 0 : values.size());
    for (std::size_t i = 0; i < kept.size(); ++i) {
      times[i] = group_.times[kept[i]];
      if (!offsets.empty()) offsets[i] = group_.offsets[kept[i]];
      if (!low.empty()) {
        std::copy_n(group_.low.begin() + static_cast<std::ptrdiff_t>(kept[i] * width_), width_,
                    low.begin() + static_cast<std::ptrdiff_t>(i * width_));
      }
      std::ranges::copy(row(kept[i]), values.begin() + static_cast<std::ptrdiff_t>(i * width_));
    }
    group_.times = std::move(times);
    group_.offsets = std::move(offsets);
    group_.values = std::move(values);
    group_.low = std::move(low);
  }

  RowGroup& group_;
  std::size_t width_;
  Turned* shared_;
};

}  // namespace

Ordered put_in_order(Table& table, Duplicates duplicates, bool keep_all) {
  Ordered out;
  Turned turned;
  Turned* const shared = table.layout == Layout::rows ? &turned : nullptr;
  for (std::size_t i = 0; i < table.groups.size(); ++i) {
    Sorter sorter(table.groups[i], table.columns.size(), shared);
    if (sorter.increases()) continue;
    out.group = i;
    if (!sorter.sort(duplicates, keep_all, out)) return out;
  }
  return out;
}

}  // namespace toto::data
