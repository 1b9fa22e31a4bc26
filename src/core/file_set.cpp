// SPDX-License-Identifier: Apache-2.0
#include "core/file_set.h"

namespace toto {

AtomicFile& FileSet::add(const std::string& path) {
  return *files_.emplace_back(std::make_unique<AtomicFile>(path));
}

void FileSet::commit() {
  for (const auto& file : files_) file->sync();
  for (const auto& file : files_) file->commit();
}

void FileSet::replace() {
  for (const auto& file : files_) file->sync();
  if (files_.size() > 1) {
    for (const auto& file : files_) file->remove_old();
  }
  for (const auto& file : files_) file->commit();
}

}  // namespace toto
