// SPDX-License-Identifier: Apache-2.0
// The tests' own XML reader, and that it rejects what is not well-formed.
#include "support/xml.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "core/utf8.h"

namespace toto::plot::test {
namespace {

class Reader {
 public:
  explicit Reader(std::string_view text) : rest_(text) {}

  std::vector<Element> document() {
    if (first_invalid_utf8(rest_) != std::string_view::npos) fail("not UTF-8");
    for (const char c : rest_) {
      if (static_cast<unsigned char>(c) < 0x20 && c != '\n') fail("control character");
    }
    if (rest_.starts_with("<?xml ")) rest_.remove_prefix(rest_.find("?>") + 2);
    white_space();
    element();
    white_space();
    if (!rest_.empty()) fail("text after the root");
    return std::move(elements_);
  }

 private:
  [[noreturn]] void fail(const char* what) const {
    throw std::runtime_error(std::string(what) + " before: " + std::string(rest_.substr(0, 60)));
  }
  void white_space() {
    while (rest_.starts_with('\n') || rest_.starts_with(' ')) rest_.remove_prefix(1);
  }
  void expect(std::string_view what) {
    if (!rest_.starts_with(what)) fail("unexpected text");
    rest_.remove_prefix(what.size());
  }
  std::string name() {
    std::size_t length = 0;
    while (length < rest_.size() &&
           (std::isalnum(static_cast<unsigned char>(rest_[length])) != 0 || rest_[length] == '-')) {
      ++length;
    }
    if (length == 0) fail("no name");
    std::string found(rest_.substr(0, length));
    rest_.remove_prefix(length);
    return found;
  }
  // Up to `end`, with references replaced.
  std::string characters(char end) {
    std::string found;
    while (!rest_.empty() && rest_.front() != end) {
      if (rest_.front() == '<') fail("bare <");
      if (rest_.front() == '&') {
        found += reference();
      } else {
        found += rest_.front();
        rest_.remove_prefix(1);
      }
    }
    if (rest_.empty()) fail("cut off");
    return found;
  }
  char reference() {
    static const std::map<std::string_view, char> kKnown = {
        {"&amp;", '&'}, {"&lt;", '<'}, {"&gt;", '>'}, {"&quot;", '"'}, {"&#39;", '\''}};
    for (const auto& [text, c] : kKnown) {
      if (!rest_.starts_with(text)) continue;
      rest_.remove_prefix(text.size());
      return c;
    }
    fail("bare &");
  }
  void element() {
    expect("<");
    const std::size_t index = elements_.size();
    elements_.push_back({name(), {}, {}});
    const std::string tag = elements_[index].name;
    while (rest_.starts_with(' ')) {
      rest_.remove_prefix(1);
      const std::string key = name();
      expect("=\"");
      const std::string value = characters('"');
      expect("\"");
      if (!elements_[index].attributes.emplace(key, value).second) fail("attribute twice");
    }
    if (rest_.starts_with("/>")) return expect("/>");
    expect(">");
    for (;;) {
      elements_[index].text += characters('<');
      if (rest_.starts_with("</")) break;
      element();
    }
    expect("</");
    if (name() != tag) fail("wrong end");
    expect(">");
  }

  std::string_view rest_;
  std::vector<Element> elements_;
};

TEST(XmlReader, ReadsWellFormedText) {
  const auto all = parse_xml("<?xml version=\"1.0\"?>\n<a b=\"1 &lt; 2\">x<c/>&amp;y</a>\n");
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].attributes.at("b"), "1 < 2");
  EXPECT_EQ(all[0].text, "x&y");
}

TEST(XmlReader, RejectsTheRest) {
  for (const char* text :
       {"<a>", "<a></b>", "<a b=1/>", "<a b=\"<\"/>", "<a>&</a>", "<a>&x;</a>", "<a/><b/>",
        "<a b=\"1\" b=\"2\"/>", "<a>\x01</a>", "<a>\xff</a>", "<a b=\"1\"c=\"2\"/>", "text"}) {
    EXPECT_THROW((void)parse_xml(text), std::runtime_error) << text;
  }
}

}  // namespace

std::vector<Element> parse_xml(std::string_view text) { return Reader(text).document(); }

}  // namespace toto::plot::test
