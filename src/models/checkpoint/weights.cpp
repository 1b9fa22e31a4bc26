// SPDX-License-Identifier: Apache-2.0
// Finding the tensors of a model in a source.
#include "models/checkpoint/weights.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "core/json.h"

namespace toto {
namespace {

std::string text_of(const std::vector<std::int64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

/// What a source holds for the tensors that are wanted, and what is wrong with it.
class Matcher {
 public:
  explicit Matcher(const WeightSource& source) : source_(source) {}

  void match(const ExpectedTensor& wanted) {
    const TensorInfo* found = source_.find(wanted.name);
    if (!found && !wanted.alternative.empty()) found = source_.find(wanted.alternative);
    if (!found) {
      check_type(wanted.name);
      if (!wanted.alternative.empty()) check_type(wanted.alternative);
      missing_.push_back(wanted.name);
      return;
    }
    if (found->shape != wanted.shape && mismatches_++ == 0) {
      mismatch_ = fmt::format("tensor {} is {}, the configuration asks for {}", found->name,
                              text_of(found->shape), text_of(wanted.shape));
    }
    parameters_ += static_cast<std::uint64_t>(found->elements());
    names_.emplace_back(wanted.name, found->name);
  }

  /// Missing tensors are told before wrong shapes: all of them at once.
  void finish() const {
    if (!missing_.empty()) {
      fail("missing_tensor",
           fmt::format("{} of {} tensors are missing: {}", missing_.size(),
                       missing_.size() + names_.size(), fmt::join(missing_, ", ")));
    }
    if (mismatches_ > 0) {
      fail("config_tensor_mismatch",
           mismatches_ == 1 ? mismatch_
                            : fmt::format("{} (and {} more differ)", mismatch_, mismatches_ - 1),
           "config.json and model.safetensors must belong together");
    }
  }

  std::uint64_t parameters_ = 0;
  std::vector<std::pair<std::string, std::string>> names_;

 private:
  [[noreturn]] void fail(std::string_view code, std::string_view message,
                         std::string_view remedy = {}) const {
    throw Error(ExitStatus::bad_data, code, message, source_.description(), remedy);
  }
  void check_type(const std::string& name) const {
    const std::string_view type = source_.unreadable_type(name);
    if (type.empty()) return;
    fail("invalid_dtype", fmt::format("tensor {} is {}; F32, F16 or BF16 is needed", name, type));
  }

  const WeightSource& source_;
  std::vector<std::string> missing_;
  std::string mismatch_;
  std::size_t mismatches_ = 0;
};

bool has(const WeightSource& source, std::string_view name) {
  return source.find(name) || !source.unreadable_type(name).empty();
}

}  // namespace

std::int64_t TensorInfo::elements() const {
  std::int64_t product = 1;
  for (const std::int64_t size : shape) product *= size;
  return product;
}

WeightTable::WeightTable(std::shared_ptr<const WeightSource> source, const TensorList& list)
    : source_(std::move(source)) {
  Matcher matcher(*source_);
  for (const ExpectedTensor& tensor : list.tensors) matcher.match(tensor);
  has_together_ = std::any_of(list.together.begin(), list.together.end(),
                              [&](const auto& tensor) { return has(*source_, tensor.name); });
  if (has_together_) {  // one without the other is a missing tensor
    for (const ExpectedTensor& tensor : list.together) matcher.match(tensor);
  }
  matcher.finish();
  names_ = std::move(matcher.names_);
  parameters_ = matcher.parameters_;

  std::vector<std::string_view> used;
  used.reserve(names_.size());
  for (const auto& [published, stored] : names_) used.push_back(stored);
  std::sort(used.begin(), used.end());
  for (const TensorInfo& tensor : source_->tensors()) {
    if (!std::binary_search(used.begin(), used.end(), tensor.name)) unused_.push_back(tensor.name);
  }
  if (list.strict) refuse_unexpected();
  std::sort(names_.begin(), names_.end());
}

void WeightTable::refuse_unexpected() const {
  std::vector<std::string> names = unused_;
  std::vector<std::string> left_out = source_->left_out();
  std::ranges::move(left_out, std::back_inserter(names));
  if (names.empty()) return;
  std::vector<std::string> quoted;
  quoted.reserve(names.size());
  for (const std::string& name : names) quoted.push_back(quote(name));
  throw Error(ExitStatus::bad_data, "unexpected_tensor",
              fmt::format("the model has no such {}: {}", names.size() == 1 ? "tensor" : "tensors",
                          fmt::join(quoted, ", ")),
              source_->description(), "config.json and the weights must belong together");
}

void WeightTable::read(std::string_view name, std::span<float> out) const {
  const auto at =
      std::lower_bound(names_.begin(), names_.end(), name,
                       [](const auto& pair, std::string_view n) { return pair.first < n; });
  const bool known = at != names_.end() && at->first == name;
  source_->read(known ? std::string_view(at->second) : name, out);
}

}  // namespace toto
