// SPDX-License-Identifier: Apache-2.0
// What was understood of files, as text and as JSON.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include "toto/error.hpp"
#include "toto/tools/data.hpp"

namespace toto::cli {

struct Inspected {
  std::string path;
  data::Dataset data;          ///< empty where there is an error
  std::optional<Error> error;  ///< why the file cannot be read
};

/// At most `series` of its series are listed.
std::string inspected_as_text(const Inspected& file, std::size_t series);

std::string inspected_as_json(std::span<const Inspected> files);

}  // namespace toto::cli
