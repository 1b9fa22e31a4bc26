// SPDX-License-Identifier: Apache-2.0
#include "toto/error.hpp"

namespace toto {
namespace {

std::string one_line(std::string_view code, std::string_view message, std::string_view where,
                     std::string_view remedy) {
  std::string line;
  line.append("[").append(code).append("] ");
  if (!where.empty()) line.append(where).append(": ");
  line.append(message);
  if (!remedy.empty()) line.append(" (").append(remedy).append(")");
  return line;
}

}  // namespace

Error::Error(ExitStatus status, std::string_view code, std::string_view message,
             std::string_view where, std::string_view remedy)
    : std::runtime_error(one_line(code, message, where, remedy)),
      status_(status),
      code_(code),
      message_(message),
      where_(where),
      remedy_(remedy) {}

}  // namespace toto
