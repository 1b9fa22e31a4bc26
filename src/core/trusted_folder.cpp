// SPDX-License-Identifier: Apache-2.0
#include "core/trusted_folder.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace toto {
namespace {

// Root can write everywhere anyway, and makes the folders of images that are shipped with files.
bool is_trusted(uid_t owner) { return owner == ::geteuid() || owner == 0; }

}  // namespace

std::string folder_problem(const std::string& folder, bool for_writing) {
  struct stat status = {};
  if (::stat(folder.c_str(), &status) != 0) {
    return errno == ENOENT ? "" : std::strerror(errno);
  }
  if (!S_ISDIR(status.st_mode)) return "it is not a folder";
  if (!is_trusted(status.st_uid)) return "it belongs to another user";
  if ((status.st_mode & S_IWOTH) != 0) return "anybody may write to it";
  if (::access(folder.c_str(), R_OK | X_OK) != 0) return "it cannot be read";
  // Root may write to any folder; one without the owner's permission is not meant to change.
  if (for_writing && ((status.st_mode & S_IWUSR) == 0 || ::access(folder.c_str(), W_OK) != 0)) {
    return "it is read-only";
  }
  return {};
}

bool is_own_file(const std::string& path) {
  struct stat status = {};
  return ::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) &&
         is_trusted(status.st_uid) && (status.st_mode & S_IWOTH) == 0;
}

}  // namespace toto
