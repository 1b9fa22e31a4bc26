// SPDX-License-Identifier: Apache-2.0
// A small reader of XML for the tests: it accepts only what is well-formed (no comments, no
// document types, which the drawing does not use) and gives the elements back.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace toto::plot::test {

struct Element {
  std::string name;
  std::map<std::string, std::string> attributes;  // unescaped
  std::string text;                               // directly inside, unescaped
};

/// All elements in the order in which they begin. Throws std::runtime_error.
std::vector<Element> parse_xml(std::string_view text);

}  // namespace toto::plot::test
