// SPDX-License-Identifier: Apache-2.0
#include "tools/verify/harness.h"

#include <fmt/format.h>
#include <malloc.h>
#include <time.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <utility>

#include "core/status_file.h"
#include "models/backend_choice.h"
#include "models/checkpoint/checkpoint.h"
#include "models/model_impl.h"

namespace toto::verify {

std::string Variant::label() const { return fmt::format("{} {}", word(mode), word(precision)); }

namespace {

Model load_exact(const ModelQuery& query) {
  LoadOptions load;
  load.backend = "reference";
  load.precision = Precision::float64;
  Checkpoint checkpoint = open_checkpoint(query);
  auto impl = std::make_shared<Model::Impl>();
  impl->info = std::move(checkpoint.info);
  impl->mode = Mode::planned;
  impl->precision = Precision::float64;
  impl->content_hash = checkpoint.weights.source().content_hash();
  impl->net = checkpoint.config->build(checkpoint.weights, make_backend(load), Build::exact,
                                       ContextCache::shared);
  return Model(std::move(impl));
}

}  // namespace

Model Harness::load(const Variant& variant, int threads) const {
  if (variant.precision == Precision::float64) return load_exact(options_.query);
  LoadOptions load = options_.load;
  // What the others are compared with is the reference's order of operations.
  if (variant.mode == Mode::eager && load.mode != Mode::eager) load.kv_cache = {};
  load.mode = variant.mode;
  load.precision = variant.precision;
  if (threads != 0) load.threads = threads;
  return Model::load(options_.query, load);
}

double Harness::now() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double Harness::processor_seconds() const {
  std::timespec mine = {};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &mine);
  return static_cast<double>(mine.tv_sec) + 1e-9 * static_cast<double>(mine.tv_nsec);
}

double Harness::used_by_others() const {
  std::ifstream file("/proc/stat");
  std::string word;
  double user = 0, nice = 0, system = 0;  // ticks
  if (!(file >> word >> user >> nice >> system)) return 0;
  return (user + nice + system) / static_cast<double>(::sysconf(_SC_CLK_TCK)) -
         Harness::processor_seconds();
}

std::uint64_t Harness::resident() const {
  ::malloc_trim(0);
  // The first of them counts pages; the figure of the second may lag behind by some for each core.
  for (const auto& [file, name] :
       {std::pair{"/proc/self/smaps_rollup", "Rss"}, std::pair{"/proc/self/status", "VmRSS"}}) {
    const std::string kibibytes = status_field(file, name);
    if (!kibibytes.empty()) return std::stoull(kibibytes) * 1024;
  }
  throw Error(ExitStatus::internal, "not_measured",
              "the system does not say how much memory is used", "/proc/self/status");
}

std::uint64_t Harness::allocations() const {
  if (!options_.allocations) {
    throw Error(ExitStatus::internal, "not_measured", "nothing counts allocations in this program");
  }
  return options_.allocations();
}

std::string Harness::second_process() const {
  if (!options_.second_process) {
    throw Error(ExitStatus::internal, "not_measured", "there is no way to start another process");
  }
  return options_.second_process();
}

}  // namespace toto::verify
