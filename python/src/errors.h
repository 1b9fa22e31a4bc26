// SPDX-License-Identifier: Apache-2.0
// Errors of the library as exceptions of Python.
#pragma once

#include <nanobind/nanobind.h>

#include <string>
#include <string_view>

#include "toto/error.hpp"

namespace toto::python {

/// From now on every toto::Error that leaves a bound function becomes the exception that
/// toto_cpp._errors.make() returns for it.
void translate_errors();

/// The same exception as an object, for futures.
nanobind::object exception_of(const Error& error);

/// str(given), in UTF-8.
std::string text_of(nanobind::handle given);

/// Throws Error (2).
[[noreturn]] void refuse(std::string_view code, const std::string& message,
                         std::string_view where = {}, std::string_view remedy = {});

}  // namespace toto::python
