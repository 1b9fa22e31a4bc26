// SPDX-License-Identifier: Apache-2.0
// Folders on a command line stand for the tables in them.
#include <algorithm>
#include <filesystem>

#include "toto/tools/data.hpp"

namespace toto::data {

namespace fs = std::filesystem;

namespace {

/// By its name; .json may be anything.
bool is_table(fs::path path) {
  const fs::path packing = path.extension();
  if (packing == ".gz" || packing == ".zst") path = path.stem();
  const fs::path kind = path.extension();
  return kind == ".csv" || kind == ".tsv" || kind == ".jsonl" || kind == ".ndjson";
}

}  // namespace

std::vector<std::string> csv_files(const std::vector<std::string>& paths) {
  std::vector<std::string> files;
  for (const std::string& path : paths) {
    std::error_code error;
    if (!fs::is_directory(path, error)) {
      files.push_back(path);
      continue;
    }
    std::vector<std::string> inside;
    for (fs::directory_iterator at(path, error), end; !error && at != end; at.increment(error)) {
      if (!is_table(at->path())) continue;
      inside.push_back(at->path().string());
      // A pipe would be waited for, and a device has no end. A link that leads nowhere is told when
      // it is opened.
      std::error_code unknown;
      if (at->exists(unknown) && !at->is_regular_file(unknown)) {
        throw Error(ExitStatus::io, "read_failed", "cannot read: not a regular file", inside.back(),
                    "only files of data belong into the folder");
      }
    }
    if (error) {
      throw Error(ExitStatus::io, "read_failed", "cannot read: " + error.message(), path);
    }
    if (inside.empty()) {
      throw Error(ExitStatus::missing_input, "no_input", "there is no table in this folder", path,
                  "tables end in .csv, .tsv or .jsonl, also with .gz or .zst");
    }
    std::ranges::sort(inside);
    files.insert(files.end(), inside.begin(), inside.end());
  }
  return files;
}

}  // namespace toto::data
