// SPDX-License-Identifier: Apache-2.0
// What a field looks like, when nothing is known about its column yet.
#pragma once

#include <string_view>

namespace toto::data {

enum class Kind { empty, number, time, text };

/// Numbers with a decimal point or comma, thousands in groups, a currency sign or a percent sign
/// are numbers; with a unit of letters they may be names ("5 day mean"), so they are text here.
Kind kind_of(std::string_view field);

/// Neither a number, with a unit or without, nor a time, nor empty.
bool is_word(std::string_view field);

}  // namespace toto::data
