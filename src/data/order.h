// SPDX-License-Identifier: Apache-2.0
// Rows in the order of time, one for each time.
#pragma once

#include <cstddef>
#include <string>

#include "data/table.h"

namespace toto::data {

/// What was done to the rows of all groups.
struct Ordered {
  std::size_t turned = 0;     // groups that were newest first
  std::size_t sorted = 0;     // groups in no order
  std::size_t identical = 0;  // rows that repeat another one, and were dropped
  std::size_t merged = 0;     // rows of another value for the same time, settled as asked
  // The first two rows of one time that `duplicates` refuses: a group, and which of its rows in the
  // order of the file.
  bool refused = false;
  std::size_t group = 0;
  std::size_t first_row = 0, second_row = 0;
  std::int64_t time = 0;
};

/// `keep_all`: rows of one time stay, for those who gather them.
Ordered put_in_order(Table& table, Duplicates duplicates, bool keep_all = false);

}  // namespace toto::data
