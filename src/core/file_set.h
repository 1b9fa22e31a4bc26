// SPDX-License-Identifier: Apache-2.0
// Output files that belong together.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/atomic_file.h"

namespace toto {

/// Nothing appears before every file is whole and on the disk. Errors are those of AtomicFile.
class FileSet {
 public:
  /// The file stays where it is until the set goes away.
  AtomicFile& add(const std::string& path);
  /// Each file replaces its old one. A kill in the middle leaves new files beside old ones.
  void commit();
  /// The old files go first, all of them: a kill in the middle leaves some of the new ones missing,
  /// never an old one beside a new one. For sets that are wrong when mixed.
  void replace();

 private:
  std::vector<std::unique_ptr<AtomicFile>> files_;
};

}  // namespace toto
