// SPDX-License-Identifier: Apache-2.0
// Models: where a checkpoint lies, what is in it, and loading it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "toto/error.hpp"
#include "toto/log.hpp"

#pragma GCC visibility push(default)
namespace toto {

enum class Paths {
  independent,  ///< every step of a patch is drawn by itself, as the official code does
  coherent,     ///< steps are drawn together, as one-patch-ahead forecasts of the context show
                ///< that they go: those of a patch, with Toto 2.0 of the horizon. Steps of the
                ///< first patch, of Toto 2.0 all, keep their distribution (docs/statistics.md).
                ///< Error (2) unsupported_paths where the model cannot
  automatic,    ///< what the model names (ModelInfo::defaults)
};

/// What a model that knows nine quantiles of a step (Toto 2.0: 0.1 to 0.9) gives beyond them: as
/// quantiles, mean, standard deviation and trajectories (docs/statistics.md).
enum class Tails {
  clamp,        ///< the outermost quantile, as the official code
  exponential,  ///< an exponential tail through the two outermost quantiles, as in GluonTS: an
                ///< assumption, not something that the model says
  normal,       ///< of the normal distribution through the median and the outermost quantile:
                ///< an assumption too
  automatic,    ///< what the model names (ModelInfo::defaults)
};

/// What a model is forecast with where options leave it open: generation_config.json beside its
/// weights names it, or it is what the official code does.
struct ModelDefaults {
  Paths paths = Paths::independent;
  Tails tails = Tails::clamp;
  /// What an option means with this model.
  [[nodiscard]] Paths meaning(Paths asked) const {
    return asked == Paths::automatic ? paths : asked;
  }
  [[nodiscard]] Tails meaning(Tails asked) const {
    return asked == Tails::automatic ? tails : asked;
  }
  bool operator==(const ModelDefaults&) const = default;
};

/// What a checkpoint is: read without loading the weights.
struct ModelInfo {
  std::string name;    ///< what the user asked for: a Hub id, a path, "toto-nano" or "toto-nano-2"
  std::string folder;  ///< the folder its files are in; empty for weights synthesised in memory
  std::vector<std::string> weight_files;  ///< model.safetensors or the shards; empty likewise
  std::string architecture;               ///< "toto-1.0" or "toto-2.0"
  bool synthetic = false;  ///< hash weights: forecasts mean nothing and are labelled so

  std::int32_t patch_size = 0;  ///< steps per token
  std::int32_t embed_dim = 0;
  std::int32_t num_layers = 0;
  std::int32_t num_heads = 0;
  std::int32_t mlp_hidden_dim = 0;
  std::int32_t spacewise_every_n_layers = 0;  ///< -1: every layer attends over time
  std::int32_t spacewise_layers = 1;          ///< that attend over variates, of so many
  bool spacewise_first = false;
  std::string scaler;           ///< "causal_patch", "causal_step" or "global"
  std::string head;             ///< "mixture", "student_t" or "quantiles"
  std::int32_t components = 0;  ///< of the mixture, or the number of quantiles
  /// Levels between which its quantiles are known. What lies beyond them, Tails says.
  double lowest_level = 0, highest_level = 1;
  /// 1 - 0.9 is 0.1 here.
  [[nodiscard]] bool knows(double level) const {
    constexpr double kSame = 1e-7;
    return level >= lowest_level - kSame && level <= highest_level + kSame;
  }
  bool variate_labels = false;
  /// How many steps before its own time the network takes a known covariate: patch_size (Toto 1.0)
  /// or 0. Whoever fills in Series::future_exogenous shifts it by so many.
  std::int32_t covariate_lead = 0;
  bool denies_covariates = false;  ///< its configuration says that it was trained without any
  /// Whether it makes much of covariates: it labels variates, or takes covariates at their own
  /// time and does not deny them.
  [[nodiscard]] bool trained_with_covariates() const {
    return variate_labels || (covariate_lead == 0 && !denies_covariates);
  }

  ModelDefaults defaults;
  std::uint64_t parameters = 0;
  std::uint64_t file_bytes = 0;  ///< of model.safetensors; 0 for weights synthesised in memory
  std::vector<std::pair<std::string, std::uint64_t>> stored_types;  ///< e.g. {"F32", 132 tensors}
  std::vector<std::string> warnings;  ///< unknown configuration keys and the like
};

/// Whether variables of the environment fill in what a program leaves open (docs/settings.md).
enum class Environment {
  obeyed,   ///< TOTO_* variables are read; one that holds nonsense is Error (78) and is named
  ignored,  ///< only what the program says, then what is built in
};

/// Where models are looked for. Empty fields fall back to the environment.
struct ModelQuery {
  std::string model;  ///< folder, .safetensors file with config.json beside it, or Hub id
                      ///< ("owner/name"); empty: TOTO_MODEL_ID, then the model that ships with toto
  std::string hub_cache = {};  ///< empty: HF_HUB_CACHE, HUGGINGFACE_HUB_CACHE, $HF_HOME/hub,
                               ///< $XDG_CACHE_HOME/huggingface/hub, ~/.cache/huggingface/hub
  bool strict = false;         ///< unknown configuration keys are errors
  Environment environment = Environment::obeyed;  ///< of TOTO_MODEL_ID; `ignored`: it is not read
};

/// Arithmetic of the network. The scaler always works in float64; norms, softmax, rotary embedding,
/// residual and head never in less than float32.
enum class Precision {
  float32,
  float64,   ///< the reference backend only: the oracle
  bfloat16,  ///< weights, and the inputs of products with them, rounded to bfloat16; sums in
             ///< float32
  tf32,      ///< float32 that may round the operands of the layers' products to eleven bits: the
             ///< cuda backend does on Hopper; elsewhere it is float32, bit by bit
  int8,      ///< the cpu backend only: weights of the layers rounded to whole numbers from -127 to
             ///< 127 times one scale for each output; their inputs and sums in float32. The input
             ///< MLP and the head stay float32.
};

/// How the forward pass is run. All modes compute the same function (docs/settings.md).
enum class Mode {
  eager,            ///< "eager": the reference's order of operations: oracle and rollback
  planned,          ///< "default": static memory, packed weights, fused operations
  reduce_overhead,  ///< "reduce-overhead": and threads stay awake from one operation to the next
  max_autotune,     ///< "max-autotune": and kernel parameters are chosen by measurement
};

/// What becomes of the keys and values of a context when several trajectories are drawn from it.
/// Both are the same function and differ by rounding beyond the first patch. Of models whose
/// trajectories go through the network (Toto 1.0).
enum class ContextCache {
  shared,          ///< "shared": computed and kept once for each series
  per_trajectory,  ///< "private": once for each trajectory, as the reference does; and with
                   ///< Decode::uncached nothing is kept: every patch computes the whole context
};

/// Where a model computes.
enum class Device {
  cpu,
  cuda,       ///< an error where it cannot be had
  automatic,  ///< cuda where it can be had, with else_cpu; otherwise the CPU, with a warning
};

/// How a model is loaded. What is left open is taken from TOTO_* variables, then from what is built
/// in, unless `environment` says otherwise; TOTO_DISABLE_COMPILE=1 makes the mode eager even where
/// the program names another (docs/settings.md).
struct LoadOptions {
  /// Empty: TOTO_COMPILE_BACKEND, then the CPU.
  std::optional<Device> device = {};
  /// Which GPU: its number as CUDA counts, among those that CUDA_VISIBLE_DEVICES leaves. Of
  /// `device` or `backend` cuda; TOTO_COMPILE_BACKEND=cuda:1 sets both.
  int device_index = 0;
  /// The implementation by name, whatever `device` says: "cpu", "cuda", or "reference" (plain
  /// loops, slow). Empty: that of the device; on a CPU "cpu", for float64 "reference".
  std::string backend = {};
  Precision precision = Precision::float32;
  /// Of the cpu backend. 0: TOTO_NUM_THREADS, then one for each available core.
  int threads = 0;
  std::string isa = {};  ///< instruction set by name, for tests; empty: the best of this machine
  /// Empty: TOTO_COMPILE_MODE and its like, then reduce_overhead.
  std::optional<Mode> mode = {};
  /// Empty: TOTO_KV_CACHE, then per_trajectory in eager, shared in every other mode.
  std::optional<ContextCache> kv_cache = {};
  /// Of "cuda": where the memory of the device does not suffice, for the weights or for a forecast,
  /// the cpu backend goes on, with a warning to `log` or to ForecasterOptions::log. Otherwise it is
  /// Error (70) out_of_memory.
  bool else_cpu = false;
  /// Where the model computes, and what is not as it was asked to be. Empty: nothing is said,
  /// unless TOTO_LOG names topics; they are then written to standard error, and so are warnings.
  LogSink log = {};
  Environment environment = Environment::obeyed;
};

/// The same options with nothing left open: what Model::load does with them. The environment has
/// been read and the device chosen. Throws Error as Model::load does for variables and devices.
LoadOptions complete(const LoadOptions& options);

/// How a model in memory runs: what its forecasts depend on besides the request.
struct LoadReport {
  Mode mode = Mode::reduce_overhead;
  ContextCache kv_cache = ContextCache::shared;
  Precision precision = Precision::float32;
  std::string device;   ///< "cpu", "cuda:0", "reference"
  std::string isa;      ///< instruction set, or the generation of the device
  std::string weights;  ///< a hash of the weights
  double seconds = 0;   ///< that loading took
};

/// A model in memory: immutable, shared, safe to use from many threads. One that was moved from can
/// be assigned to and destroyed; all else, a forecaster for it included, is Error (2) moved_from.
class Model {
 public:
  /// Resolves, checks and loads. Throws Error: model_not_found / shard_not_found (66), and for
  /// malformed files the codes of docs/errors.md (65, 78); device_unavailable (69) and
  /// out_of_memory (70) of the cuda backend; for variables of the environment the codes of
  /// resolve_settings (78).
  static Model load(const ModelQuery& query, const LoadOptions& options = {});
  /// Hash weights in memory (docs/verification.md), for tests and benchmarks. `preset`:
  /// "toto-open-base-1.0", "toto-2.0-4m", "toto-2.0-22m", "toto-2.0-313m", "toto-2.0-1b" or
  /// "toto-2.0-2.5b".
  static Model synthesise(std::string_view preset, std::uint64_t seed,
                          const LoadOptions& options = {});

  [[nodiscard]] const ModelInfo& info() const;
  [[nodiscard]] LoadReport loaded() const;

  struct [[gnu::visibility("hidden")]] Impl;
  explicit Model(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  [[nodiscard]] const Impl& impl() const;

 private:
  std::shared_ptr<const Impl> impl_;
};

/// Why the "cuda" backend cannot be used here: a build without it, no driver, no device, an old
/// one. Empty where it can.
std::string cuda_unavailable();
/// How many CUDA devices there are; 0 where cuda_unavailable() says why.
int cuda_devices();

/// Describes a checkpoint without loading its weights; errors as for Model::load.
ModelInfo inspect_model(const ModelQuery& query);

/// SHA-256 of a file as 64 hexadecimal digits, to compare with what a hub publishes.
/// Throws Error: file_not_found (66), read_failed (74).
std::string file_sha256(const std::string& path);

/// Writes `config.json` and `model.safetensors` (F32, published names) with the hash weights.
/// `config_json` is the text of a config.json; `progress` (may be empty) is called with bytes
/// written and bytes in all. The files appear whole or not at all. Throws Error: write_failed (74)
/// and config codes (78).
void write_synthetic_checkpoint(
    std::string_view config_json, std::uint64_t seed, const std::string& folder,
    const std::function<void(std::uint64_t, std::uint64_t)>& progress = {});

/// The text of config.json of a preset (Model::synthesise). Throws Error: unknown_preset (2).
std::string preset_config(std::string_view preset);

}  // namespace toto
#pragma GCC visibility pop
