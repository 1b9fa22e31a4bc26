// SPDX-License-Identifier: Apache-2.0
#include "engine/plan_entry.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <set>
#include <tuple>

#include "core/sha256.h"
#include "toto/error.hpp"

namespace toto {
namespace {

constexpr std::string_view kMagic = "totoplan";
constexpr std::size_t kChecksum = 32;  // characters
constexpr std::size_t kHead = kMagic.size() + 4 + 4;
constexpr std::size_t kChoiceBytes = 4 + 4 + 2 + 4 + 8;  // the shortest
constexpr std::size_t kShapeBytes = 5 * 4;

constexpr std::array kKeyTexts = {&PlanCacheKey::program, &PlanCacheKey::model, &PlanCacheKey::isa,
                                  &PlanCacheKey::type, &PlanCacheKey::device};
constexpr std::array kShapeNumbers = {&PlanShape::batch, &PlanShape::variates, &PlanShape::context,
                                      &PlanShape::horizon, &PlanShape::samples};

bool is_plan_text(std::string_view text) {
  return text.size() <= kMaxPlanText &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~'; });
}

template <typename T>
void put(std::string& out, T value) {
  for (std::size_t i = 0; i < sizeof(T); ++i) {
    out.push_back(static_cast<char>(static_cast<std::uint64_t>(value) >> (8 * i) & 0xFF));
  }
}

void put_text(std::string& out, std::string_view text) {
  if (!is_plan_text(text)) {
    throw Error(ExitStatus::internal, "internal", "a text does not fit into a plan entry");
  }
  put(out, static_cast<std::uint16_t>(text.size()));
  out.append(text);
}

/// Reads from the front; once something is missing, everything after it is.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}

  template <typename T>
  void number(T& value) {
    const std::string_view bytes = take(sizeof(T));
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      sum |= static_cast<std::uint64_t>(static_cast<unsigned char>(bytes[i])) << (8 * i);
    }
    value = static_cast<T>(sum);
  }
  void text(std::string& value) {
    std::uint16_t size = 0;
    number(size);
    const std::string_view bytes = take(size);
    good_ = good_ && is_plan_text(bytes);
    if (good_) value = bytes;
  }
  /// A count of items of at least `least` bytes each: 0 if there cannot be so many.
  std::size_t count(std::size_t most, std::size_t least) {
    std::uint32_t items = 0;
    number(items);
    good_ = good_ && items <= most && items <= rest_.size() / least;
    return good_ ? items : 0;
  }
  [[nodiscard]] bool complete() const { return good_ && rest_.empty(); }

 private:
  std::string_view take(std::size_t size) {
    good_ = good_ && size <= rest_.size();
    if (!good_) return {};
    const std::string_view taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return taken;
  }

  std::string_view rest_;
  bool good_ = true;
};

std::string checksum(std::string_view head, std::string_view body) {
  Sha256 hash;
  hash.update(head);
  hash.update(body);
  return hash.hex().substr(0, kChecksum);
}

/// `key` says what an item is about; there is one item for each key.
template <typename Item, typename Key>
void add_missing(std::vector<Item>& to, const std::vector<Item>& from, std::size_t most,
                 const Key& key) {
  std::set<decltype(key(from[0]))> known;
  for (const Item& item : to) known.insert(key(item));
  for (const Item& item : from) {
    if (to.size() >= most) return;
    if (known.insert(key(item)).second) to.push_back(item);
  }
}

}  // namespace

std::string_view plan_program_version() { return TOTO_VERSION; }

bool is_plan_shape(const PlanShape& shape) {
  const auto within = [](std::uint64_t number, std::uint64_t most) {
    return number >= 1 && number <= most;
  };
  return within(shape.batch, 1 << 16) && within(shape.variates, 1 << 16) &&
         within(shape.context, 10'000'000) && within(shape.horizon, 100'000) &&
         shape.samples <= 65'536 &&
         std::uint64_t{shape.batch} * shape.variates <= (1ULL << 32) / shape.context;
}

PlanEntry merge(const PlanEntry& first, const PlanEntry& second) {
  PlanEntry all;
  for (const PlanEntry* from : {&first, &second}) {
    add_missing(all.choices, from->choices, kMaxKernelChoices, [](const KernelChoice& choice) {
      return std::tuple(choice.n, choice.k, choice.tag);
    });
    std::vector<PlanShape> possible;
    std::copy_if(from->shapes.begin(), from->shapes.end(), std::back_inserter(possible),
                 is_plan_shape);
    add_missing(all.shapes, possible, kMaxPlanShapes, [](const PlanShape& shape) {
      return std::tuple(shape.batch, shape.variates, shape.context, shape.horizon, shape.samples);
    });
  }
  return all;
}

std::string encode(const KeyedPlanEntry& entry) {
  std::string body;
  for (const auto text : kKeyTexts) put_text(body, entry.key.*text);
  const PlanEntry kept = merge(entry.entry, {});
  put(body, static_cast<std::uint32_t>(kept.choices.size()));
  for (const KernelChoice& choice : kept.choices) {
    put(body, choice.n);
    put(body, choice.k);
    put_text(body, choice.tag);
    put(body, choice.candidate);
    put(body, choice.nanoseconds);
  }
  put(body, static_cast<std::uint32_t>(kept.shapes.size()));
  for (const PlanShape& shape : kept.shapes) {
    for (const auto number : kShapeNumbers) put(body, shape.*number);
  }
  return seal_plan(body);
}

std::string seal_plan(std::string_view body) {
  std::string file(kMagic);
  put(file, kPlanFormat);
  put(file, static_cast<std::uint32_t>(body.size()));
  return file.append(checksum(file, body)).append(body);
}

std::optional<KeyedPlanEntry> decode(std::string_view bytes) {
  if (bytes.size() < kHead + kChecksum || bytes.size() > kMaxPlanEntryBytes) return std::nullopt;
  const std::string_view head = bytes.substr(0, kHead);
  const std::string_view body = bytes.substr(kHead + kChecksum);
  std::uint32_t format = 0;
  std::uint32_t size = 0;
  Reader numbers(head.substr(kMagic.size()));
  numbers.number(format);
  numbers.number(size);
  if (!head.starts_with(kMagic) || format != kPlanFormat || size != body.size() ||
      bytes.substr(kHead, kChecksum) != checksum(head, body)) {
    return std::nullopt;
  }
  KeyedPlanEntry result;
  Reader reader(body);
  for (const auto text : kKeyTexts) reader.text(result.key.*text);
  result.entry.choices.resize(reader.count(kMaxKernelChoices, kChoiceBytes));
  for (KernelChoice& choice : result.entry.choices) {
    reader.number(choice.n);
    reader.number(choice.k);
    reader.text(choice.tag);
    reader.number(choice.candidate);
    reader.number(choice.nanoseconds);
  }
  result.entry.shapes.resize(reader.count(kMaxPlanShapes, kShapeBytes));
  for (PlanShape& shape : result.entry.shapes) {
    for (const auto number : kShapeNumbers) reader.number(shape.*number);
  }
  // Nor is one an entry that says something twice, or has a shape that cannot be.
  if (!reader.complete() || merge(result.entry, {}) != result.entry) return std::nullopt;
  return result;
}

}  // namespace toto
