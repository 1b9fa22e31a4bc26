// SPDX-License-Identifier: Apache-2.0
// Whether what lies in a folder can be believed.
#pragma once

#include <string>

namespace toto {

/// Why files that this program keeps for itself must not be read from (and, `for_writing`, put
/// into) this folder: another user could have put others there. Empty where it is safe. A folder
/// that is not there is safe.
std::string folder_problem(const std::string& folder, bool for_writing);

/// Whether only this user or root could have written the file, which is there and regular.
bool is_own_file(const std::string& path);

}  // namespace toto
