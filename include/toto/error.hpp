// SPDX-License-Identifier: Apache-2.0
// Errors: one class, a stable code, and the exit status the command line maps it to.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

#pragma GCC visibility push(default)
namespace toto {

/// What the command line exits with. The numbers are part of the interface.
enum class ExitStatus : int {
  ok = 0,
  attention = 1,  ///< nothing is wrong with the run, but it approves nothing: only some checks
                  ///< were asked for, or forecasts have drifted from a record
  usage = 2,      ///< the command line or a request's options are wrong
  verification_failed = 3,  ///< a check of `toto verify` did not hold
  bad_data = 65,            ///< a data or model file is malformed
  missing_input = 66,       ///< a file, shard or model is not there
  device_unavailable = 69,  ///< the device asked for is not to be had
  internal = 70,            ///< a defect of this program
  io = 74,                  ///< reading or writing failed
  bad_config = 78,          ///< config.json or a setting is wrong
  interrupted = 130,        ///< stopped by SIGINT
};

/// Every error a user can cause. `code()` is stable and meant for programs; `what()` is one line
/// for people: where, what was expected, what was found, and what to do next.
class Error : public std::runtime_error {
 public:
  /// `where` names the file (with line and column), tensor, field or series; `remedy` says what to
  /// do. Both may be empty.
  Error(ExitStatus status, std::string_view code, std::string_view message,
        std::string_view where = {}, std::string_view remedy = {});

  [[nodiscard]] ExitStatus status() const noexcept { return status_; }
  [[nodiscard]] const std::string& code() const noexcept { return code_; }
  [[nodiscard]] const std::string& message() const noexcept { return message_; }
  [[nodiscard]] const std::string& where() const noexcept { return where_; }
  [[nodiscard]] const std::string& remedy() const noexcept { return remedy_; }

 private:
  ExitStatus status_;
  std::string code_;
  std::string message_;
  std::string where_;
  std::string remedy_;
};

}  // namespace toto
#pragma GCC visibility pop

#if __cplusplus < 202002L
#error "toto needs C++20: compile with -std=c++20 (pkg-config --cflags toto says so)"
#endif
