// SPDX-License-Identifier: Apache-2.0
// Where C++ ends: every function of toto.h that can fail runs inside guard().
#pragma once

#include <string>
#include <string_view>

#include "toto/error.hpp"
#include "toto/toto.h"

namespace toto::capi {

/// Sets `*error` (where `error` is not null) from the exception that is being handled, and says
/// what its status is. To be called inside a catch block.
toto_status report_current_exception(toto_error** error) noexcept;

/// Runs `body`. What it throws becomes a status and an error object.
template <typename Body>
toto_status guard(toto_error** error, Body&& body) noexcept {
  if (error != nullptr) *error = nullptr;
  try {
    body();
    return TOTO_OK;
  } catch (...) {
    return report_current_exception(error);
  }
}

/// A usage error about an argument or a field, for example "series[2].values".
[[noreturn]] void refuse(std::string_view code, std::string_view where, std::string_view message,
                         std::string_view remedy = {});

/// `pointer` as a reference. Throws null_argument where it is null.
template <typename T>
T& required(T* pointer, std::string_view name) {
  if (pointer == nullptr) refuse("null_argument", name, "expected a pointer, found NULL");
  return *pointer;
}

/// A text of the caller's; empty for NULL.
inline std::string text(const char* given) { return given == nullptr ? "" : given; }

}  // namespace toto::capi
