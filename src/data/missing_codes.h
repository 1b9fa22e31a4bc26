// SPDX-License-Identifier: Apache-2.0
// Numbers that stand for "missing": -9999 of weather services, -999, 9999.9.
#pragma once

#include "data/table.h"

namespace toto::data {

/// Takes -999, -9999, -99999 (also with .9, .90 or .99 behind) for missing where a column has one
/// of them (-999 more than once) and nothing else below a tenth of it. A warning names column and
/// code, and another one a column in which 999.9, 9999.9 or 99.99 lies far above the rest more than
/// once: whether that stands for missing only its owner knows. Whether anything was taken away.
bool drop_missing_codes(Table& table);

}  // namespace toto::data
