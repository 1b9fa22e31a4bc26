// SPDX-License-Identifier: Apache-2.0
// Times of a series, which others may share: rows of one table and columns of one file have the
// same.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <utility>
#include <vector>

#pragma GCC visibility push(default)

namespace toto::data {

/// A vector of times that copies share until one of them is changed. Copies may be read on several
/// threads; one that is changed must be nobody else's meanwhile, as with a vector.
class Times {
 public:
  using value_type = std::int64_t;
  using Vector = std::vector<std::int64_t>;

  Times() = default;
  // A vector is what it stands for, so both ways are implicit.
  Times(Vector times)  // NOLINT(google-explicit-constructor)
      : all_(std::make_shared<Vector>(std::move(times))) {}
  Times(std::initializer_list<std::int64_t> times) : Times(Vector(times)) {}

  operator const Vector&() const { return vector(); }  // NOLINT(google-explicit-constructor)
  [[nodiscard]] const Vector& vector() const {
    static const Vector nothing;
    return all_ ? *all_ : nothing;
  }
  [[nodiscard]] std::size_t size() const { return vector().size(); }
  [[nodiscard]] bool empty() const { return vector().empty(); }
  [[nodiscard]] const std::int64_t* data() const { return vector().data(); }
  [[nodiscard]] const std::int64_t* begin() const { return data(); }
  [[nodiscard]] const std::int64_t* end() const { return data() + size(); }
  [[nodiscard]] std::int64_t operator[](std::size_t i) const { return vector()[i]; }
  [[nodiscard]] std::int64_t front() const { return vector().front(); }
  [[nodiscard]] std::int64_t back() const { return vector().back(); }

  /// To be changed: its own copy where it is shared. Of those that share, one thread at a time.
  [[nodiscard]] Vector& edit() {
    if (!all_) {
      all_ = std::make_shared<Vector>();
    } else if (all_.use_count() > 1) {
      all_ = std::make_shared<Vector>(*all_);
    }
    return *all_;
  }
  [[nodiscard]] bool shares(const Times& other) const { return all_ == other.all_; }

  friend bool operator==(const Times& a, const Times& b) {
    return a.shares(b) || a.vector() == b.vector();
  }

 private:
  std::shared_ptr<Vector> all_;
};

}  // namespace toto::data

#pragma GCC visibility pop
