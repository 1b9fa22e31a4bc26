// SPDX-License-Identifier: Apache-2.0
// Micro-batches, and memory for them.
#include "engine/engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <utility>

#include "backend/path_ops.h"
#include "backend/share_out.h"
#include "core/stopwatch.h"

namespace toto {

Engine::Engine(const Network& net, PlanTable& plans)
    : Engine(net, plans, std::make_shared<DeviceWork>(net.backend(), plans.max_plans())) {}

Engine::Engine(const Network& net, PlanTable& plans, std::shared_ptr<DeviceWork> work)
    : net_(net),
      backend_(net.backend()),
      plans_(plans),
      program_(net.program()),
      work_(std::move(work)),
      patch_(net.patch()) {}

Engine::~Engine() { release(backend_, buffers_); }

Item item_of(const SeriesRequest& request, std::size_t index, std::int32_t patch) {
  const Series& s = *request.series;
  Item item;
  item.index = index;
  item.variates = static_cast<std::int32_t>(s.variates);
  item.tokens = context_tokens(s, patch, request.align);
  item.exogenous = static_cast<std::int32_t>(s.exogenous);
  item.covariates = !s.future_exogenous.empty();
  item.covariate_gaps = std::ranges::find(s.future_mask, 0) != s.future_mask.end();
  item.horizon = static_cast<std::int32_t>(request.horizon);
  item.patches = (item.horizon + patch - 1) / patch;
  item.trajectories = request.trajectories;
  item.seed = request.seed;
  item.forced = request.forced;
  item.decoding = request.decoding;
  item.tails = request.tails;
  return item;
}

void take_into(MicroBatch& batch, const Item& item, const SeriesRequest& request,
               std::int32_t exact_steps) {
  batch.samples = batch.samples || request.samples;
  batch.parameters = batch.parameters || request.parameters;
  batch.level_count = std::max(batch.level_count, item.level_count);
  batch.variates += item.variates;
  batch.horizon = std::max(batch.horizon, item.horizon);
  batch.patches = std::max(batch.patches, item.patches);
  batch.trajectories = std::max(batch.trajectories, item.trajectories);
  batch.sampled =
      batch.sampled || (!batch.mean && item.trajectories > 0 && item.horizon > exact_steps);
}

void check_paths(const Network& net, const Generation& generation) {
  if (!generation.coherent || net.has_paths()) return;
  throw Error(ExitStatus::usage, "unsupported_paths",
              fmt::format("this model draws no coherent paths on {}", net.backend().name()),
              "paths", "independent paths");
}

void Engine::run(std::span<const SeriesRequest> requests, const Generation& generation,
                 const Limits& limits, ResultSink& sink, std::unique_lock<std::mutex>* turn) {
  const OnDevice on(backend_);
  requests_ = requests;
  turn_ = turn;
  generation_ = generation;
  check_paths(net_, generation);
  if (generation.coherent && net_.components() > 0) backend_.paths()->reserve(net_.components());
  {
    const Stopwatch watch(work_->times.prepare, "prepare");
    formed_.count = 0;
    items_.resize(requests.size());
    share_out(backend_, requests.size(), [&](std::size_t i) {
      check_series(*requests[i].series, patch_, requests[i].align, requests[i].horizon);
      items_[i] = item_of(requests[i], i, patch_);
    });
    for (const Item& item : items_) program_->check(item);
  }
  done_ = total_ = 0;
  for (const Item& item : items_) {
    total_ += static_cast<std::size_t>(std::max(item.trajectories, 1)) *
              static_cast<std::size_t>(item.patches);
  }
  sink.progress(0, total_);
  const std::int64_t rows = chunk_rows(limits);
  try {
    for (std::size_t first = 0; first < requests.size();) {
      const std::size_t count = chunk_size(first, rows, limits);
      run_range(first, count, limits, sink);
      first += count;
    }
    if (under_way_ > 0) sink.handed_over();
    while (under_way_ > 0) land(sink);
  } catch (...) {
    give_up_flights();
    throw;
  }
}

bool Engine::captures() const {
  return capturing_ && backend_.capture() != nullptr && generation_.probe == nullptr;
}

/// The most rows of a chunk: as many as are allowed or, where chunks overlap, a share of all.
std::int64_t Engine::chunk_rows(const Limits& limits) const {
  // Enough to keep all of a device busy.
  constexpr std::int64_t kOverlapping = 16384;
  if (!captures()) return limits.rows;
  MicroBatch common;
  common.cached = generation_.cached;
  std::int64_t all = 0, most = 0;
  for (const Item& item : items_) {
    const std::int64_t rows = program_->prefill_rows(item, common);
    all += rows;
    most = std::max(most, rows);
  }
  const std::int64_t chunks = (all + kOverlapping - 1) / kOverlapping;
  if (chunks <= 1) return limits.rows;
  return std::min(limits.rows, (all + chunks - 1) / chunks + most);
}

/// How many requests, from `first` on, go through the network together.
std::size_t Engine::chunk_size(std::size_t first, std::int64_t most_rows, const Limits& limits) {
  MicroBatch common;
  common.cached = generation_.cached;
  const bool first_on_host = on_host(items_[first]);
  std::int64_t rows = 0;
  std::size_t count = 0;
  for (std::size_t i = first; i < items_.size(); ++i) {
    rows += program_->prefill_rows(items_[i], common);
    // Statistics are formed on the host or by the backend: the same for all of a micro-batch.
    const bool other = on_host(items_[i]) != first_on_host;
    if (count > 0 && (rows > most_rows || other)) break;
    ++count;
  }
  // Few enough that all trajectories fit into one graph.
  while (count > 1) {
    const MicroBatch& batch = batch_of(first, count);
    if (program_->at_once(batch, limits) >= min_at_once(batch)) break;
    count -= (count + 3) / 4;
  }
  return count;
}

/// The fewest trajectories at once with which a forecast can be captured.
std::int32_t Engine::min_at_once(const MicroBatch& batch) const {
  return captures() ? program_->min_at_once(batch) : 1;
}

/// Whether a request has more trajectories than the backend can form statistics of.
bool Engine::on_host(const Item& item) const {
  return item.trajectories > backend_.statistics_limits().samples;
}

/// Formed once, however often it is asked for.
const MicroBatch& Engine::batch_of(std::size_t first, std::size_t count) {
  if (formed_.count != count || formed_.first != first) {
    formed_.count = 0;  // should it fail
    formed_.batch = form_batch(first, count);
    formed_.first = first;
    formed_.count = count;
  }
  return formed_.batch;
}

MicroBatch Engine::form_batch(std::size_t first, std::size_t count) {
  const auto begin = items_.begin() + static_cast<std::ptrdiff_t>(first);
  const auto end = begin + static_cast<std::ptrdiff_t>(count);
  // So that a sequence keeps its place while those with fewer patches end.
  if (!std::is_sorted(begin, end,
                      [](const Item& a, const Item& b) { return a.patches > b.patches; })) {
    std::sort(begin, end, [](const Item& a, const Item& b) {
      return a.patches > b.patches || (a.patches == b.patches && a.index < b.index);
    });
  }
  MicroBatch batch;
  batch.mean = generation_.mean;
  batch.cached = generation_.cached;
  batch.exact = generation_.exact;
  levels_.clear();
  const double* last = nullptr;
  std::int32_t last_first = 0;
  std::int32_t horizon = -1, exact_steps = 0;  // of the item before
  for (auto item = begin; item != end; ++item) {
    const SeriesRequest& request = requests_[item->index];
    const std::span<const double> asked = request.levels;
    if (asked.data() != last || levels_.empty()) {
      last = asked.data();
      last_first = static_cast<std::int32_t>(levels_.size());
      levels_.insert(levels_.end(), asked.begin(), asked.end());
    }
    item->level_first = last_first;
    item->level_count = static_cast<std::int32_t>(asked.size());
    if (batch.exact && item->horizon != horizon) {
      horizon = item->horizon;
      exact_steps = net_.exact_steps(horizon);
    }
    take_into(batch, *item, request, exact_steps);
  }
  batch.coherent = generation_.coherent && batch.trajectories > 0;
  if (batch.sampled && on_host(*begin)) {
    batch.sampled = false;
    batch.samples = true;
  }
  batch.levels = levels_;
  batch.items = std::span<const Item>(items_).subspan(first, count);
  return batch;
}

void Engine::run_range(std::size_t first, std::size_t count, const Limits& limits,
                       ResultSink& sink) {
  const std::int32_t at_once = program_->at_once(batch_of(first, count), limits);
  if (run_chunk(first, count, at_once, sink)) return;
  if (count == 1) refuse(first);
  ++work_->splits;
  plans_.log(Topic::memory, "batch_split",
             fmt::format("batch split: {} series do not fit together", count));
  run_range(first, count / 2, limits, sink);
  run_range(first + count / 2, count - count / 2, limits, sink);
}

/// False, and nothing has been said to the sink about these, where the memory does not suffice.
bool Engine::run_chunk(std::size_t first, std::size_t count, std::int32_t at_once,
                       ResultSink& sink) {
  MicroBatch batch = batch_of(first, count);
  batch.at_once = at_once;
  const bool ahead = under_way_ == kFlights;
  if (ahead) {
    prepare_chunk(first, count);
    land(sink);
  }
  bool begun = false;
  for (;;) {
    if (!acquire(batch, sink)) return false;
    if (!begun) {
      if (!ahead) prepare_chunk(first, count);
      if (generation_.probe != nullptr) generation_.probe->begin(first, count);
      begun = true;
    }
    const Outcome outcome = execute(batch, sink);
    if (outcome == Outcome::done) return true;
    if (wait_for_landing(sink)) continue;
    // What the plan holds may be what inputs and results are short of.
    plans_.forget();
    if (count > 1 || batch.at_once == 1) return false;
    ++work_->splits;
    batch.at_once = (batch.at_once + 1) / 2;
  }
}

void Engine::prepare_chunk(std::size_t first, std::size_t count) {
  const Stopwatch watch(work_->times.prepare, "prepare");
  if (pool_.size() < count) pool_.resize(count);
  // By the thread that reads items again, not by those that prepare them.
  for (std::size_t i = 0; i < count; ++i) items_[first + i].prepared = &pool_[i];
  share_out(backend_, count, [&](std::size_t i) {
    const SeriesRequest& r = requests_[items_[first + i].index];
    prepare(*r.series, patch_, r.align, r.horizon, pool_[i]);
  });
}

/// Finds memory for as many trajectories as fit, halving `at_once`; false where not even one does.
/// Nothing is halved for want of memory that others give back.
bool Engine::acquire(MicroBatch& batch, ResultSink& sink) {
  // Rather fewer series than so few trajectories that nothing can be captured.
  const std::int32_t fewest =
      batch.items.size() == 1 ? 1 : std::min(batch.at_once, min_at_once(batch));
  for (;;) {
    const Capacity wanted = program_->need(batch);
    const std::uint64_t limit = plans_.memory_limit();
    if (limit == 0 || plans_.bytes_for(wanted) <= limit) {
      try {
        memory_ = &plans_.acquire(wanted);
        return true;
      } catch (const std::bad_alloc&) {
        plans_.log(Topic::memory, "no_memory",
                   fmt::format("no memory for {} trajectories of {} series", batch.at_once,
                               batch.items.size()));
        if (work_->graphs.forget()) continue;  // theirs may be all that is missing
        if (wait_for_landing(sink)) continue;
      }
    }
    if (batch.at_once <= fewest) return false;
    ++work_->splits;
    batch.at_once = std::max((batch.at_once + 1) / 2, fewest);
  }
}

void Engine::refuse(std::size_t first) {
  MicroBatch batch = batch_of(first, 1);
  batch.at_once = 1;
  const std::size_t bytes = plans_.bytes_for(program_->need(batch));
  const double mebibytes = static_cast<double>(bytes) / (1 << 20);
  const std::string where = fmt::format("series '{}'", requests_[items_[first].index].series->id);
  const std::string message =
      fmt::format("one trajectory needs {:.1f} MiB of working memory", mebibytes);
  if (plans_.memory_limit() != 0 && bytes > plans_.memory_limit()) {
    throw Error(ExitStatus::usage, "memory_limit",
                fmt::format("{}, the limit is {:.1f} MiB", message,
                            static_cast<double>(plans_.memory_limit()) / (1 << 20)),
                where, "raise the limit or shorten context and horizon");
  }
  throw Error(ExitStatus::internal, "out_of_memory", message, where,
              "free memory, or shorten context and horizon");
}

void Engine::count(Counters& counters) const {
  counters.splits = work_->splits;
  counters.host_reads = work_->host_reads;
  counters.graph_captures = work_->graph_captures;
  counters.capture_seconds = work_->capture_seconds;
  counters.graph_replays = work_->graph_replays;
  counters.graph_fallbacks = work_->graph_fallbacks;
  counters.graph_launches = work_->launches;
  counters.allocations += work_->allocations;
  counters.device_seconds = work_->device_seconds;
  counters.operations = work_->cost.operations;
  counters.weight_bytes = work_->cost.weight_bytes;
  counters.prepare_seconds = work_->times.prepare;
  counters.context_seconds = work_->times.prefill;
  counters.decode_seconds = work_->times.decode;
  counters.statistics_seconds = work_->times.statistics;
}

}  // namespace toto
