// SPDX-License-Identifier: Apache-2.0
// From a name to files: folders, files, fabricated Hugging Face caches, indices (robustness 20,
// 21).
#include "models/checkpoint/resolve.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "models/checkpoint/hub_cache.h"
#include "models/checkpoint/shipped_model.h"
#include "support/test_files.h"

namespace toto {
namespace {

namespace fs = std::filesystem;
using test::error_of;
using test::ScopedEnvironment;
using test::TempFolder;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kId = "Datadog/Toto-Open-Base-1.0";
constexpr const char* kHub = "models--Datadog--Toto-Open-Base-1.0";

/// No variable of the caller's environment reaches a test.
class Resolve : public testing::Test {
 protected:
  TempFolder folder_;
  ScopedEnvironment model_{"TOTO_MODEL_ID", {}};
  ScopedEnvironment cache_{"HF_HUB_CACHE", {}};
  ScopedEnvironment old_cache_{"HUGGINGFACE_HUB_CACHE", {}};
  ScopedEnvironment hf_home_{"HF_HOME", {}};
  ScopedEnvironment xdg_{"XDG_CACHE_HOME", {}};
  ScopedEnvironment home_{"HOME", folder_.path("home")};

  std::string write_model(const std::string& name) const {
    folder_.write(name + "/config.json", "{}");
    folder_.write(name + "/model.safetensors", "");
    return folder_.path(name);
  }
  std::string write_snapshot(const std::string& cache, const std::string& revision) const {
    return write_model(
        std::string(cache).append("/").append(kHub).append("/snapshots/").append(revision));
  }
  void write_ref(const std::string& cache, const std::string& text) const {
    folder_.write(std::string(cache).append("/").append(kHub).append("/refs/main"), text);
  }
  ResolvedModel hub(const std::string& id = kId) const {
    return resolve_model({.model = id, .hub_cache = folder_.path("hub")});
  }
  Error hub_error(const std::string& id = kId) const {
    return error_of([&] { hub(id); });
  }
};

TEST_F(Resolve, AFolder) {
  const std::string folder = write_model("my");
  const ResolvedModel model = resolve_model({.model = folder});
  EXPECT_EQ(model.name, folder);
  EXPECT_EQ(model.folder, folder);
  EXPECT_EQ(model.config, folder + "/config.json");
  EXPECT_THAT(model.weights, ElementsAre(folder + "/model.safetensors"));
}

TEST_F(Resolve, AFileWithItsConfigurationBesideIt) {
  folder_.write("my/config.json", "{}");
  const std::string file = folder_.write("my/other-name.safetensors", "");
  const ResolvedModel model = resolve_model({.model = file});
  EXPECT_EQ(model.name, file);
  EXPECT_EQ(model.config, folder_.path("my/config.json"));
  EXPECT_THAT(model.weights, ElementsAre(file));
}

TEST_F(Resolve, AFileInTheCurrentFolder) {
  write_model("my");
  const fs::path before = fs::current_path();
  fs::current_path(folder_.path("my"));
  const ResolvedModel model = resolve_model({.model = "model.safetensors"});
  fs::current_path(before);
  EXPECT_EQ(model.folder, ".");
  EXPECT_EQ(model.config, "./config.json");
}

TEST_F(Resolve, AFileWithoutConfiguration) {
  const std::string file = folder_.write("my/model.safetensors", "");
  const Error error = error_of([&] { resolve_model({.model = file}); });
  EXPECT_EQ(error.code(), "model_incomplete");
  EXPECT_THAT(error.message(), HasSubstr("config.json"));
}

TEST_F(Resolve, AnIncompleteFolderNamesWhatIsMissing) {
  folder_.write("a/config.json", "{}");
  folder_.write("b/model.safetensors", "");
  folder_.write("c/README", "");
  for (const auto& [name, missing] :
       {std::pair{"a", "model.safetensors is missing"}, std::pair{"b", "config.json is missing"},
        std::pair{"c", "config.json and model.safetensors are"}}) {
    const Error error =
        error_of([&, name = name] { resolve_model({.model = folder_.path(name)}); });
    EXPECT_EQ(error.code(), "model_incomplete");
    EXPECT_EQ(error.status(), ExitStatus::missing_input);
    EXPECT_EQ(error.where(), folder_.path(name));
    EXPECT_THAT(error.message(), HasSubstr(missing));
  }
}

TEST_F(Resolve, NothingOfThatName) {
  for (const std::string& name :
       {folder_.path("none"), std::string("none"), std::string("a/b/c"), std::string("../x"),
        std::string("a//b"), std::string("/a/b"), std::string("-a/b"), std::string("a/..b"),
        std::string("a--b/c"), std::string("a/b\n"), std::string("./model.safetensors")}) {
    const Error error = error_of([&] { resolve_model({.model = name}); });
    EXPECT_EQ(error.code(), "model_not_found") << name;
    EXPECT_EQ(error.status(), ExitStatus::missing_input);
  }
}

TEST_F(Resolve, TheArgumentComesBeforeTheEnvironment) {
  const std::string a = write_model("a");
  const std::string b = write_model("b");
  const ScopedEnvironment environment("TOTO_MODEL_ID", b);
  EXPECT_EQ(resolve_model({.model = a}).name, a);
  EXPECT_EQ(resolve_model({}).name, b);
}

TEST_F(Resolve, ABrokenChoiceIsNeverReplacedByAnother) {
  write_model("a");
  const ScopedEnvironment environment("TOTO_MODEL_ID", folder_.path("none"));
  EXPECT_EQ(error_of([&] { resolve_model({}); }).code(), "model_not_found");
}

TEST_F(Resolve, TheShippedModelIsFoundFromTheProgram) {
  const std::string model = write_model("tree/models/toto-nano-2");
  EXPECT_EQ(find_shipped_model(folder_.path("tree")), model);
  EXPECT_EQ(find_shipped_model(folder_.path("tree/build/release")), model);
  EXPECT_EQ(find_shipped_model(folder_.path("tree/a/b/c/d")), model);
  EXPECT_EQ(find_shipped_model(folder_.path("tree/a/b/c/d/e")), "");
  EXPECT_EQ(find_shipped_model(folder_.path("elsewhere/bin")), "");
  const std::string installed = write_model("prefix/share/toto/models/toto-nano-2");
  EXPECT_EQ(find_shipped_model(folder_.path("prefix/bin")), installed);
  EXPECT_EQ(find_shipped_model(folder_.path("prefix/lib")), installed);
  EXPECT_EQ(find_shipped_model(folder_.path("prefix/lib/x86_64-linux-gnu")), installed);
  EXPECT_EQ(find_shipped_model(""), "");
  const std::string beside = write_model("prefix/bin/models/toto-nano-2");
  EXPECT_EQ(find_shipped_model(folder_.path("prefix/bin")), beside);
}

TEST_F(Resolve, TheDefaultIsTotoNano2) {
  const ScopedEnvironment environment("TOTO_MODEL_ID", "");
  const ResolvedModel model = resolve_model({});
  EXPECT_EQ(model.name, "toto-nano-2");
  EXPECT_EQ(fs::path(model.folder).filename(), "toto-nano-2");
}

TEST_F(Resolve, EveryShippedModelHasAName) {
  const std::string second = write_model("tree/models/toto-nano");
  EXPECT_EQ(find_shipped_model(folder_.path("tree/bin"), "toto-nano"), second);
  EXPECT_EQ(find_shipped_model(folder_.path("tree/bin")), "");
  for (const std::string_view name : kShippedModels) {
    const ResolvedModel model = resolve_model({.model = std::string(name)});
    EXPECT_EQ(model.name, name);
    EXPECT_EQ(fs::path(model.folder).filename(), name);
  }
}

TEST_F(Resolve, HubSnapshotOfPlainFiles) {
  write_snapshot("hub", "old");
  const std::string snapshot = write_snapshot("hub", "abc123");
  write_ref("hub", "abc123");
  const ResolvedModel model = hub();
  EXPECT_EQ(model.name, kId);
  EXPECT_EQ(model.folder, snapshot);
  EXPECT_THAT(model.weights, ElementsAre(snapshot + "/model.safetensors"));
}

TEST_F(Resolve, HubSnapshotOfLinks) {
  const std::string model = std::string("hub/") + kHub;
  folder_.write(model + "/blobs/one", "{}");
  folder_.write(model + "/blobs/two", "");
  const fs::path snapshot = folder_.path(model + "/snapshots/abc");
  fs::create_directories(snapshot);
  fs::create_symlink("../../blobs/one", snapshot / "config.json");
  fs::create_symlink("../../blobs/two", snapshot / "model.safetensors");
  write_ref("hub", "abc\n");
  EXPECT_EQ(hub().folder, snapshot.string());
  fs::remove(folder_.path(model + "/blobs/two"));  // a download that was broken off
  const Error error = hub_error();
  EXPECT_EQ(error.code(), "model_incomplete");
  EXPECT_EQ(error.status(), ExitStatus::missing_input);
  EXPECT_THAT(error.message(), HasSubstr("model.safetensors is missing"));
  EXPECT_THAT(error.remedy(), HasSubstr("huggingface-cli download Datadog/Toto-Open-Base-1.0"));
}

TEST_F(Resolve, HubRefThatIsAPipe) {
  write_snapshot("hub", "abc");
  write_ref("hub", "abc");
  const std::string ref = folder_.path(std::string("hub/") + kHub + "/refs/main");
  std::filesystem::remove(ref);
  ASSERT_EQ(::mkfifo(ref.c_str(), 0600), 0);
  EXPECT_EQ(hub_error().code(), "read_failed");  // and does not wait for a writer
}

TEST_F(Resolve, HubWithoutRefs) {
  const std::string snapshot = write_snapshot("hub", "abc");
  EXPECT_EQ(hub().folder, snapshot);
  write_snapshot("hub", "def");
  const Error error = hub_error();
  EXPECT_EQ(error.code(), "ambiguous_snapshot");
  EXPECT_EQ(error.status(), ExitStatus::missing_input);
  EXPECT_THAT(error.message(), HasSubstr("refs/main"));
  EXPECT_THAT(error.message(), HasSubstr("2 snapshots"));
  EXPECT_THAT(error.remedy(), HasSubstr(snapshot));
}

TEST_F(Resolve, HubRefToASnapshotThatIsNotThere) {
  write_snapshot("hub", "abc");
  write_ref("hub", "def");
  EXPECT_EQ(hub_error().code(), "model_not_found");
}

TEST_F(Resolve, HubRefThatLeavesTheCache) {
  write_snapshot("hub", "abc");
  for (const char* text : {"../../../etc", "/etc", "..", ".", "a/b", "abc\ndef"}) {
    write_ref("hub", text);
    const Error error = hub_error();
    EXPECT_EQ(error.code(), "unsafe_path") << text;
    EXPECT_EQ(error.status(), ExitStatus::bad_config);
  }
  write_ref("hub", " \n");  // says nothing: as if it were not there
  EXPECT_NO_THROW(hub());
}

TEST_F(Resolve, HubModelNotCachedSaysHowToFetchIt) {
  const ScopedEnvironment environment("HF_HUB_CACHE", folder_.path("hub"));
  const Error error = error_of([&] { resolve_model({.model = kId}); });
  EXPECT_EQ(error.code(), "model_not_found");
  EXPECT_EQ(error.status(), ExitStatus::missing_input);
  EXPECT_EQ(error.where(), kId);
  EXPECT_THAT(error.message(), HasSubstr(folder_.path("hub")));
  EXPECT_THAT(error.remedy(), HasSubstr("`huggingface-cli download Datadog/Toto-Open-Base-1.0`"));
  EXPECT_THAT(error.remedy(), HasSubstr("`hf download Datadog/Toto-Open-Base-1.0`"));
  EXPECT_THAT(hub_error().remedy(), HasSubstr("--cache-dir " + folder_.path("hub")));
}

TEST_F(Resolve, HubModelWithoutSnapshots) {
  fs::create_directories(folder_.path(std::string("hub/") + kHub + "/snapshots"));
  EXPECT_EQ(hub_error().code(), "model_not_found");
  EXPECT_EQ(hub_error("other/model").code(), "model_not_found");
}

TEST_F(Resolve, OrderOfTheCaches) {
  EXPECT_EQ(hub_cache_folder(""), folder_.path("home/.cache/huggingface/hub"));
  const ScopedEnvironment xdg("XDG_CACHE_HOME", "/xdg");
  EXPECT_EQ(hub_cache_folder(""), "/xdg/huggingface/hub");
  const ScopedEnvironment home("HF_HOME", "/hf");
  EXPECT_EQ(hub_cache_folder(""), "/hf/hub");
  const ScopedEnvironment old("HUGGINGFACE_HUB_CACHE", "/old");
  EXPECT_EQ(hub_cache_folder(""), "/old");
  const ScopedEnvironment cache("HF_HUB_CACHE", "/cache");
  EXPECT_EQ(hub_cache_folder(""), "/cache");
  EXPECT_EQ(hub_cache_folder("/argument"), "/argument");
  const ScopedEnvironment empty("HF_HUB_CACHE", "");
  EXPECT_EQ(hub_cache_folder(""), "/old");
  const ScopedEnvironment tilde("HF_HUB_CACHE", "~/cache");
  EXPECT_EQ(hub_cache_folder(""), folder_.path("home/cache"));
}

TEST_F(Resolve, NoHomeAndNoCache) {
  const ScopedEnvironment home("HOME", {});
  EXPECT_EQ(hub_cache_folder(""), "");
  EXPECT_EQ(error_of([&] { resolve_model({.model = kId}); }).code(), "model_not_found");
}

TEST_F(Resolve, EveryCacheIsLookedUp) {
  write_snapshot("home/.cache/huggingface/hub", "abc");
  EXPECT_THAT(resolve_model({.model = kId}).folder, HasSubstr("/home/.cache/"));
  write_snapshot("hf/hub", "abc");
  const ScopedEnvironment environment("HF_HOME", folder_.path("hf"));
  EXPECT_THAT(resolve_model({.model = kId}).folder, HasSubstr("/hf/hub/"));
}

TEST_F(Resolve, AFolderOfThatNameComesBeforeTheHub) {
  write_snapshot("hub", "abc");
  const std::string local = write_model(kId);
  const fs::path before = fs::current_path();
  fs::current_path(folder_.path());
  const ResolvedModel model = hub();
  fs::current_path(before);
  EXPECT_EQ(model.folder, kId);
}

class Index : public Resolve {
 protected:
  Error refusal(const std::string& index) {
    folder_.write("m/config.json", "{}");
    folder_.write("m/model.safetensors.index.json", index);
    return error_of([&] { resolve_model({.model = folder_.path("m")}); });
  }
};

TEST_F(Index, NamesTheShards) {
  folder_.write("m/config.json", "{}");
  folder_.write("m/model.safetensors.index.json",
                R"({"metadata":{"total_size":1},"weight_map":{"x":"b.st","y":"a.st","z":"b.st"}})");
  folder_.write("m/a.st", "");
  folder_.write("m/b.st", "");
  EXPECT_THAT(resolve_model({.model = folder_.path("m")}).weights,
              ElementsAre(folder_.path("m/a.st"), folder_.path("m/b.st")));
  folder_.write("m/model.safetensors", "");  // a whole file wins, as with the Hub's own library
  EXPECT_THAT(resolve_model({.model = folder_.path("m")}).weights,
              ElementsAre(folder_.path("m/model.safetensors")));
}

TEST_F(Index, ShardsOutsideTheFolder) {
  folder_.write("x", "");
  for (const char* name : {"../x", "../../x", "/etc/hostname", "a/../../x", "", "a\\u0000b"}) {
    const Error error = refusal(std::string(R"({"weight_map":{"t":")").append(name).append("\"}}"));
    EXPECT_EQ(error.code(), "unsafe_path") << name;
    EXPECT_EQ(error.status(), ExitStatus::bad_config);
  }
}

TEST_F(Index, AbsentShardsAreListed) {
  folder_.write("m/b.st", "");
  const Error error = refusal(R"({"weight_map":{"x":"a.st","y":"b.st","z":"c.st"}})");
  EXPECT_EQ(error.code(), "shard_not_found");
  EXPECT_EQ(error.status(), ExitStatus::missing_input);
  EXPECT_THAT(error.message(), HasSubstr("2 of 3"));
  EXPECT_THAT(error.message(), HasSubstr("\"a.st\", \"c.st\""));
}

TEST_F(Index, Malformed) {
  EXPECT_EQ(refusal("[").code(), "invalid_json");
  EXPECT_EQ(refusal("[]").code(), "invalid_json");
  EXPECT_EQ(refusal("{}").code(), "missing_key");
  EXPECT_EQ(refusal(R"({"weight_map":{}})").code(), "invalid_value");
  EXPECT_EQ(refusal(R"({"weight_map":[]})").code(), "invalid_value");
  EXPECT_EQ(refusal(R"({"weight_map":{"x":1}})").code(), "invalid_value");
  EXPECT_EQ(refusal(R"({"weight_map":{"x":"a","x":"b"}})").code(), "duplicate_key");
  EXPECT_EQ(refusal(R"({"weight_map":{"x":1}})").status(), ExitStatus::bad_config);
}

}  // namespace
}  // namespace toto
