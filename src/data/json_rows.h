// SPDX-License-Identifier: Apache-2.0
// The rows in a JSON document, as they go by.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace toto::data {

using JsonMembers = std::vector<std::pair<std::string, std::string>>;  // name, text

/// What is found in a document. Texts are those of the document.
struct JsonRow {
  bool by_name = false;        // an object's members; else an array's elements, without names
  std::size_t series = kNone;  // which labels are its own
  const JsonMembers& fields;
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);
};

/// Hears the parts of a document from nlohmann's parser and tells of its rows.
class JsonRows final : public nlohmann::json_sax<nlohmann::json> {
 public:
  /// False from `take`: enough.
  using Take = std::function<bool(const JsonRow&)>;
  explicit JsonRows(Take take) : take_(std::move(take)) {}

  /// The labels of each series that a row named.
  std::vector<std::string>& labels() { return labels_; }
  [[nodiscard]] bool stopped() const { return stopped_; }
  [[nodiscard]] const std::string& error() const { return error_; }
  [[nodiscard]] std::size_t error_at() const { return error_at_; }

  bool null() override { return scalar(""); }
  bool boolean(bool value) override { return scalar(value ? "1" : "0"); }
  bool number_integer(std::int64_t value) override { return scalar(std::to_string(value)); }
  bool number_unsigned(std::uint64_t value) override { return scalar(std::to_string(value)); }
  bool number_float(double, const std::string& text) override { return scalar(text); }
  bool string(std::string& text) override { return scalar(text); }
  bool binary(nlohmann::json::binary_t&) override { return false; }
  bool start_object(std::size_t) override { return open(false); }
  bool start_array(std::size_t) override { return open(true); }
  bool key(std::string& name) override;
  bool end_object() override;
  bool end_array() override;
  bool parse_error(std::size_t at, const std::string&,
                   const nlohmann::json::exception& error) override;

 private:
  enum class List { none, times, values };

  struct Frame {
    bool array = false;
    bool flat = true;  // holds scalars alone
    std::string name;  // of the member that this is
    std::string key;   // of the member that comes
    JsonMembers scalars;
    JsonMembers labels;
    std::string times, values;  // lists of the object, a line for each element
    List list = List::none;     // of the object around, that this array is
    std::size_t series = JsonRow::kNone;
  };

  bool scalar(std::string_view text);
  bool open(bool array);
  bool tell(bool by_name, std::size_t series, const JsonMembers& fields);
  bool tell_lists(Frame& frame);
  bool tell_object(Frame& frame, const Frame* around, const Frame* further);

  Take take_;
  std::vector<Frame> frames_;
  std::vector<std::string> labels_;
  bool stopped_ = false;
  std::string error_;
  std::size_t error_at_ = 0;
};

}  // namespace toto::data
