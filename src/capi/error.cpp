// SPDX-License-Identifier: Apache-2.0
// toto_error, and from exceptions to errors.
#include <exception>
#include <new>
#include <optional>
#include <string>

#include "capi/guard.h"

struct toto_error {
  // Empty: there was no memory left to say more.
  std::optional<toto::Error> error;
};

namespace toto::capi {
namespace {

constexpr const char* kNoMemoryCode = "out_of_memory";
constexpr const char* kNoMemory = "not enough memory";

// Given out where not even an error can be allocated; never freed, never changed.
toto_error no_memory_left;

toto_status give(toto_error** error, const Error& what) noexcept {
  if (error == nullptr) return static_cast<toto_status>(what.status());
  try {
    *error = new toto_error{what};
  } catch (...) {
    *error = &no_memory_left;
  }
  return static_cast<toto_status>(what.status());
}

}  // namespace

toto_status report_current_exception(toto_error** error) noexcept {
  try {
    try {
      throw;
    } catch (const Error& e) {
      return give(error, e);
    } catch (const std::bad_alloc&) {
      return give(error, {ExitStatus::internal, kNoMemoryCode, kNoMemory});
    } catch (const std::exception& e) {
      return give(error, {ExitStatus::internal, "internal", e.what()});
    } catch (...) {
      return give(error, {ExitStatus::internal, "internal", "a callback threw an exception"});
    }
  } catch (...) {  // no memory for the texts of the error
    if (error != nullptr) *error = &no_memory_left;
    return TOTO_INTERNAL;
  }
}

void refuse(std::string_view code, std::string_view where, std::string_view message,
            std::string_view remedy) {
  throw Error(ExitStatus::usage, code, message, where, remedy);
}

namespace {

const char* part_of(const toto_error* error, const std::string& (Error::*part)() const noexcept) {
  return error != nullptr && error->error ? ((*error->error).*part)().c_str() : "";
}

}  // namespace
}  // namespace toto::capi

using toto::Error;
using toto::capi::part_of;

toto_status toto_error_status(const toto_error* error) {
  if (error == nullptr) return TOTO_OK;
  return error->error ? static_cast<toto_status>(error->error->status()) : TOTO_INTERNAL;
}
const char* toto_error_code(const toto_error* error) {
  if (error == &toto::capi::no_memory_left) return toto::capi::kNoMemoryCode;
  return part_of(error, &Error::code);
}
const char* toto_error_message(const toto_error* error) {
  if (error == &toto::capi::no_memory_left) return toto::capi::kNoMemory;
  return error == nullptr || !error->error.has_value() ? "" : error->error.value().what();
}
const char* toto_error_where(const toto_error* error) { return part_of(error, &Error::where); }
const char* toto_error_remedy(const toto_error* error) { return part_of(error, &Error::remedy); }
void toto_error_free(toto_error* error) {
  if (error != &toto::capi::no_memory_left) delete error;
}
