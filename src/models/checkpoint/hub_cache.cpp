// SPDX-License-Identifier: Apache-2.0
// The layout of the cache: models--OWNER--NAME/refs/main holds the name of a folder under
// models--OWNER--NAME/snapshots, and the files in there are links to blobs, or plain copies.
#include "models/checkpoint/hub_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include "core/input_file.h"
#include "core/json.h"

namespace toto {
namespace {

namespace fs = std::filesystem;

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

/// The Hugging Face libraries expand a leading ~ in these variables; so does this.
std::string expand_home(std::string path) {
  if (path == "~" || path.starts_with("~/")) path.replace(0, 1, environment("HOME"));
  return path;
}

bool is_hub_name(std::string_view name) {
  const auto legal = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
  };
  return !name.empty() && name.front() != '.' && name.front() != '-' &&
         name.find("..") == name.npos && name.find("--") == name.npos &&
         std::all_of(name.begin(), name.end(), legal);
}

/// What refs/main says; empty where there is no such file or it is blank.
std::string main_revision(const fs::path& model) {
  const fs::path file = model / "refs" / "main";
  std::error_code ignored;
  if (!fs::exists(file, ignored)) return {};
  if (!fs::is_regular_file(file, ignored)) {  // a pipe would be waited for
    throw Error(ExitStatus::io, "read_failed", "cannot read: not a regular file", file.string());
  }
  std::string revision = read_text_file(file.string(), 4096, ExitStatus::bad_config);
  constexpr std::string_view kSpace = " \t\r\n";
  revision.erase(0, std::min(revision.find_first_not_of(kSpace), revision.size()));
  revision.erase(revision.find_last_not_of(kSpace) + 1);
  if (!revision.empty() && !is_hub_name(revision)) {
    throw Error(ExitStatus::bad_config, "unsafe_path",
                fmt::format("{} is not the name of a snapshot", quote(revision)), file.string());
  }
  return revision;
}

std::vector<std::string> snapshots_of(const fs::path& model) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator at(model / "snapshots", error), end; !error && at != end;
       at.increment(error)) {
    std::error_code ignored;
    if (at->is_directory(ignored)) names.push_back(at->path().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

bool is_hub_id(std::string_view text) {
  const std::size_t slash = text.find('/');
  return slash != text.npos && is_hub_name(text.substr(0, slash)) &&
         is_hub_name(text.substr(slash + 1));
}

std::string hub_cache_folder(std::string_view argument) {
  if (!argument.empty()) return std::string(argument);
  for (const char* name : {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"}) {
    if (const std::string value = environment(name); !value.empty()) return expand_home(value);
  }
  if (const std::string home = environment("HF_HOME"); !home.empty()) {
    return expand_home(home) + "/hub";
  }
  if (const std::string cache = environment("XDG_CACHE_HOME"); !cache.empty()) {
    return expand_home(cache) + "/huggingface/hub";
  }
  const std::string home = environment("HOME");
  return home.empty() ? "" : home + "/.cache/huggingface/hub";
}

std::string hub_download_command(std::string_view id, std::string_view argument) {
  const std::string rest =
      fmt::format("{}{}", id, argument.empty() ? "" : fmt::format(" --cache-dir {}", argument));
  return fmt::format("fetch it with `huggingface-cli download {}` or `hf download {}`", rest, rest);
}

std::string hub_snapshot(std::string_view id, std::string_view argument) {
  const std::string cache = hub_cache_folder(argument);
  if (cache.empty()) {
    throw Error(ExitStatus::missing_input, "model_not_found",
                "there is no Hugging Face cache to look in: HOME is not set", id,
                "set HF_HUB_CACHE, or name a folder");
  }
  std::string folder = fmt::format("models--{}", id);
  folder.replace(folder.find('/'), 1, "--");
  const fs::path model = fs::path(cache) / folder;
  const std::string revision = main_revision(model);
  const std::vector<std::string> snapshots = snapshots_of(model);
  if (!revision.empty()) {
    std::string snapshot = (model / "snapshots" / revision).string();
    if (std::find(snapshots.begin(), snapshots.end(), snapshot) != snapshots.end()) return snapshot;
  } else if (snapshots.size() == 1) {
    return snapshots.front();
  } else if (snapshots.size() > 1) {
    throw Error(ExitStatus::missing_input, "ambiguous_snapshot",
                fmt::format("refs/main is missing and there are {} snapshots", snapshots.size()),
                model.string(), "name the folder of one, such as " + snapshots.front());
  }
  throw Error(ExitStatus::missing_input, "model_not_found",
              fmt::format("not in the Hugging Face cache {}", cache), id,
              hub_download_command(id, argument));
}

}  // namespace toto
