// SPDX-License-Identifier: Apache-2.0
// What the Markdown and the HTML report say, as rows of text.
#pragma once

#include <string>
#include <vector>

#include "toto/tools/verify.hpp"

namespace toto::verify {

using Rows = std::vector<std::vector<std::string>>;

std::string report_title(const VerifyReport& report);
/// One sentence: may it be deployed, and how many checks held.
std::string summary(const VerifyReport& report);
/// Groups in the order in which they first appear.
std::vector<std::string> groups(const VerifyReport& report);
std::string heading(const std::string& group);  // "Correctness"

Rows head_rows(const VerifyReport& report);
Rows group_rows(const VerifyReport& report);
Rows attention_rows(const VerifyReport& report);  // what failed, could not run, or warns
Rows check_rows(const VerifyReport& report, const std::string& group);
Rows environment_rows(const VerifyReport& report);
Rows reproduce_rows(const VerifyReport& report);

extern const std::vector<std::string> kGroupColumns, kAttentionColumns, kCheckColumns;

/// "1.2e-07 of scale".
std::string amount(double value, const std::string& unit);
/// What is left to the bound, as a share of it: "97 %"; "exact" where the bound is 0 and held.
std::string margin_text(const Check& check);

}  // namespace toto::verify
