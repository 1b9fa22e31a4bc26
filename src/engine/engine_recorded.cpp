// SPDX-License-Identifier: Apache-2.0
// Forecasts on a backend that records: everything that a request is made of is written to one piece
// of memory, the recording of its plan is played, and the results are read from another.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <new>

#include "core/stopwatch.h"
#include "engine/engine.h"

namespace toto {
namespace {

constexpr std::int32_t kMostPasses = 64;  // patches times passes over the trajectories
constexpr std::int32_t kMostComponents = 32;
constexpr std::int32_t kMostLevels = 1000;

std::int32_t bucket32(std::int64_t n) { return static_cast<std::int32_t>(bucket(n)); }

class Offsets {
 public:
  std::size_t take(std::size_t bytes) {
    const std::size_t at = used_;
    used_ = (used_ + bytes + 255) / 256 * 256;
    return at;
  }
  [[nodiscard]] std::size_t used() const { return used_; }

 private:
  std::size_t used_ = 0;
};

std::size_t floats(std::int64_t count) { return static_cast<std::size_t>(count) * sizeof(float); }

InputLayout lay_out_inputs(const RecordingKey& key, const Recorder& recorder, std::int64_t patch) {
  InputLayout at;
  Offsets offsets;
  const std::int64_t cells = key.rows * patch;
  at.x = offsets.take(floats(cells));
  at.mask = offsets.take(static_cast<std::size_t>(cells));
  at.covariates = offsets.take(floats(key.plan.covariates));
  at.levels = offsets.take(static_cast<std::size_t>(key.levels) * sizeof(double));
  at.level_count = offsets.take(sizeof(std::int32_t));
  at.context = offsets.take(recorder.live_bytes(key.series, key.rows));
  at.last = offsets.take(recorder.live_bytes(key.series, key.variates));
  at.further_bytes = recorder.live_bytes(key.series, key.variates);
  at.further = offsets.take(at.further_bytes * static_cast<std::size_t>(key.passes) *
                            static_cast<std::size_t>(key.patches));
  at.bytes = offsets.used();
  return at;
}

}  // namespace

/// Why a request has to be carried out operation by operation; nullptr: it can be recorded.
const char* Engine::unrecordable(const Generation& g, const WantedStatistics& wanted,
                                 std::int32_t passes) {
  if (!share_) return "the context is repeated";
  if (!g.forced.empty() || g.observer || g.statistics) return "somebody looks inside";
  if (wanted.parameters) return "parameters are kept";
  if (net_.config().components > kMostComponents) return "too many components";
  if (wanted.levels.size() > kMostLevels) return "too many levels";
  if (wanted.sampled && g.trajectories > net_.backend().recorder()->most_samples()) {
    return "too many samples";
  }
  if (std::max(passes, 1) * patches_ > kMostPasses) return "too many patches";
  return nullptr;
}

/// The fewest trajectories at once with which a forecast can be recorded: with fewer, its bits
/// would be those of single operations. 1 where it makes no difference.
std::int32_t Engine::fewest_recorded(const Generation& g) const {
  if (net_.backend().recorder() == nullptr || !recording_ || !share_) return 1;
  if (patches_ > kMostPasses) return 1;
  const std::int32_t passes = kMostPasses / patches_;
  return (std::max(g.trajectories, 1) + passes - 1) / passes;
}

Engine::Played Engine::run_recorded(const Generation& g, const Chunk& chunk, std::int32_t batch,
                                    Sink& sink) {
  Recorder* const recorder = net_.backend().recorder();
  const WantedStatistics* const wanted = sink.wanted();
  if (recorder == nullptr || !recording_ || wanted == nullptr) return Played::impossible;
  const std::int32_t passes = (g.trajectories + batch - 1) / batch;
  const char* const why = unrecordable(g, *wanted, passes);
  if (why != nullptr) {
    ++graph_fallbacks_;
    plans_.log(fmt::format("graph fallback: {}", why));
    return Played::impossible;
  }
  const RecordingKey key = key_of(g, chunk, batch, *wanted);
  Recorded* recorded = recordings_.find(key);
  if (recorded == nullptr) recorded = record(g, key);
  if (recorded == nullptr) return Played::no_memory;
  {
    const Stopwatch watch(prepare_seconds_);
    write_inputs(g, batch, *wanted, *recorded);
  }
  {
    const Stopwatch watch(context_seconds_);
    const std::array<Awaited, 2> awaited = results_of(*recorded, chunk, *wanted);
    device_seconds_ += recorder->play(
        *recorded->recording, g.time_device,
        recorded->on_host ? std::span<const Awaited>(awaited) : std::span<const Awaited>());
    launches_ = recorded->recording->launches();
    ++graph_replays_;
  }
  read_results(chunk, *wanted, *recorded, sink);
  done_ += chunk.count * static_cast<std::size_t>(std::max(g.trajectories, 1)) *
           static_cast<std::size_t>(patches_);
  sink.progress(done_, total_);
  return Played::yes;
}

/// Where a forecast's statistics are: exact ones, and those of trajectories.
std::array<Awaited, 2> Engine::results_of(const Recorded& r, const Chunk& chunk,
                                          const WantedStatistics& wanted) const {
  const RecordingKey& key = r.key;
  const auto lanes = static_cast<std::size_t>(chunk.variates);
  const auto horizon = static_cast<std::size_t>(key.horizon(patch_));
  const auto exact = static_cast<std::size_t>(key.exact_steps(patch_));
  const auto stride = static_cast<std::size_t>(key.stride());
  const std::size_t used = 2 + wanted.levels.size();
  const auto at = [&](std::size_t bytes) { return reinterpret_cast<float*>(r.out.host + bytes); };
  return {Awaited{at(0), lanes * exact, stride, used},
          Awaited{at(r.sampled_at), key.sampled ? lanes * (horizon - exact) : 0, stride, used}};
}

RecordingKey Engine::key_of(const Generation& g, const Chunk& chunk, std::int32_t batch,
                            const WantedStatistics& wanted) const {
  const Capacity& plan = memory_->capacity;
  const auto within = [](std::int64_t n, std::int64_t most) {
    return static_cast<std::int32_t>(std::min<std::int64_t>(bucket32(n), most));
  };
  RecordingKey key;
  key.plan = plan;
  key.epoch = plans_.epoch();
  key.rows = within(chunk.context_rows, plan.rows);
  key.variates = within(chunk.variates, plan.context_lanes);
  key.series = std::min(bucket32(static_cast<std::int64_t>(chunk.count)), key.variates);
  key.lanes = within(chunk.variates * batch, plan.lanes);
  key.patches = patches_;
  key.last_steps =
      within(static_cast<std::int64_t>(horizon_) - std::int64_t{patches_ - 1} * patch_, patch_);
  key.passes = (g.trajectories + batch - 1) / batch;
  key.trajectories = g.trajectories;
  key.levels = bucket32(static_cast<std::int64_t>(wanted.levels.size()));
  key.mean = g.mean;
  key.exact = wanted.exact_steps > 0;
  key.sampled = wanted.sampled;
  key.samples = wanted.samples;
  return key;
}

/// Records the forecast of a key; nullptr where there is no memory for it.
Recorded* Engine::record(const Generation& g, const RecordingKey& key) {
  Recorder& recorder = *net_.backend().recorder();
  auto recorded = std::make_unique<Recorded>();
  recorded->key = key;
  recorded->at = lay_out_inputs(key, recorder, patch_);
  const std::int64_t stride = key.stride();
  const std::int64_t horizon = key.horizon(patch_);
  const std::int64_t exact = key.exact_steps(patch_);
  const std::int64_t kept = key.trajectories * key.variates * horizon;
  Offsets offsets;
  offsets.take(floats(key.variates * exact * stride));
  recorded->sampled_at =
      offsets.take(key.sampled ? floats(key.variates * (horizon - exact) * stride) : 0);
  recorded->samples_at = offsets.take(key.samples ? floats(kept) : 0);
  try {
    recorded->in = recorder.allocate_mirror(recorded->at.bytes);
    recorded->out = recorder.allocate_mirror(offsets.used());
    if (!key.samples && kept > 0) recorded->kept = net_.backend().allocate(floats(kept));
    recorder.begin();
    try {
      record_operations(g, *recorded);
    } catch (...) {
      recorder.abandon();
      throw;
    }
    recorded->recording = recorder.end();
  } catch (const std::bad_alloc&) {
    recordings_.release(*recorded);
    return recordings_.forget() ? record(g, key) : nullptr;  // others may hold what is missing
  } catch (...) {
    recordings_.release(*recorded);
    throw;
  }
  ++graph_captures_;
  if (recordings_.full()) plans_.log("graph evicted: max-plans graphs are kept");
  plans_.log(fmt::format("graph captured: {} kernels, {} rows, {} lanes, {} patches",
                         recorded->recording->launches(), key.rows, key.lanes, key.patches));
  return &recordings_.add(std::move(recorded));
}

/// The operations of generate(), on batches as large as the key allows.
void Engine::record_operations(const Generation& g, Recorded& r) {
  const RecordingKey& key = r.key;
  const Backend& be = net_.backend();
  Recorder& recorder = *net_.backend().recorder();
  const Workspace& w = *memory_;
  const auto batch_at = [&](std::size_t at, std::int32_t rows, std::int32_t lanes) {
    Batch b;
    b.count = key.series;
    b.rows = rows;
    b.lanes = lanes;
    b.live = reinterpret_cast<const LiveBatch*>(r.in.device + at);
    b.variates = key.variates;
    return b;
  };
  const Batch context = batch_at(r.at.context, key.rows, key.variates);
  const Batch last = batch_at(r.at.last, key.variates, key.variates);
  const Levels levels{reinterpret_cast<const double*>(r.in.device + r.at.levels),
                      reinterpret_cast<const std::int32_t*>(r.in.device + r.at.level_count),
                      key.levels};
  // Samples are read by what forms their statistics.
  const std::size_t results = key.samples ? r.out.bytes : r.samples_at;
  std::byte* const to = key.samples ? r.out.device : recorder.results(r.out, results);
  r.on_host = to == r.out.host;
  const auto out = [&](std::size_t at) { return reinterpret_cast<float*>(to + at); };
  float* const kept = key.samples ? out(r.samples_at) : static_cast<float*>(r.kept);
  const std::int32_t horizon = key.horizon(patch_);
  PatchShape shape{patch_, net_.config().components, key.first_steps(patch_)};
  const std::int32_t exact = key.exact_steps(patch_);

  recorder.copy_in_and_scale(r.in, r.at.bytes, context, net_.scaler_spec(), r.in.device + r.at.x,
                             reinterpret_cast<const std::uint8_t*>(r.in.device + r.at.mask),
                             w.context_state,
                             {w.act.scaled, w.loc, w.scale, w.context_loc, w.context_scale});
  Activations a = w.act;
  a.params = w.context_params;
  net_.forward(context, last, w.rotary, w.kv, a, shape.steps, nullptr, key.exact);
  if (key.exact) {
    recorder.exact_statistics(last, shape, net_.raw_output(), w.context_params, w.context_loc,
                              w.context_scale, levels, out(0));
  }
  for (std::int32_t pass = 0; pass < key.passes; ++pass) {
    for (std::int32_t patch = 0; patch < key.patches; ++patch) {
      const auto index = static_cast<std::size_t>(std::int64_t{pass} * key.patches + patch);
      const Batch further =
          batch_at(r.at.further + index * r.at.further_bytes, key.lanes, key.lanes);
      shape.steps = patch + 1 < key.patches ? patch_ : key.last_steps;
      if (patch == 0) {
        be.repeat_state(last, further, w.context_state, w.state);
      } else {
        be.scale(further, net_.scaler_spec(), w.y, w.ones, w.state,
                 {w.act.scaled, w.loc, w.scale, w.lane_loc, w.lane_scale});
        net_.forward(further, further, w.rotary, w.kv, w.act, shape.steps);
      }
      const Batch* const shared = patch == 0 ? &last : nullptr;
      const void* const params = patch == 0 ? w.context_params : w.act.params;
      const void* const loc = patch == 0 ? w.context_loc : w.lane_loc;
      const void* const scale = patch == 0 ? w.context_scale : w.lane_scale;
      if (g.mean) {
        be.predict_mean(further, shared, shape, params, loc, scale, w.y);
      } else {
        be.predict_draw(further, shared, shape, g.seed, params, loc, scale, w.y);
      }
      if (key.plan.covariates > 0) {
        be.inject(further, shape, r.in.device + r.at.covariates, w.y);
      }
      recorder.keep(further, last, shape, w.y, kept, horizon, key.trajectories);
    }
  }
  if (key.sampled) {
    recorder.sample_statistics(last, kept, horizon, exact, key.trajectories, levels,
                               out(r.sampled_at));
  }
  if (!r.on_host && results > 0) recorder.copy_out(r.out, results);
}

void Engine::write_inputs(const Generation& g, std::int32_t batch, const WantedStatistics& wanted,
                          const Recorded& r) {
  const Recorder& recorder = *net_.backend().recorder();
  const RecordingKey& key = r.key;
  describe_context(1, 0);
  float* x = r.floats(r.at.x);
  std::byte* mask = r.in.host + r.at.mask;
  const std::ptrdiff_t label = std::ptrdiff_t{labels_} * patch_;
  for (const Prepared& s : prepared_) {
    const std::ptrdiff_t steps = static_cast<std::ptrdiff_t>(s.tokens) * patch_;
    for (std::int32_t v = 0; v < s.variates; ++v) {
      std::fill_n(x, label, 0.0F);
      std::fill_n(mask, label, std::byte{0});
      std::memcpy(x + label, s.values.data() + v * steps, floats(steps));
      std::memcpy(mask + label, s.mask.data() + v * steps, static_cast<std::size_t>(steps));
      x += label + steps;
      mask += label + steps;
    }
  }
  std::copy(staging_.begin(), staging_.end(), r.floats(r.at.covariates));
  std::memcpy(r.in.host + r.at.levels, wanted.levels.data(), wanted.levels.size_bytes());
  const auto level_count = static_cast<std::int32_t>(wanted.levels.size());
  std::memcpy(r.in.host + r.at.level_count, &level_count, sizeof level_count);
  recorder.write_live(context_, g.seed, r.in, r.at.context, key.series, key.rows);
  recorder.write_live(context_last_, g.seed, r.in, r.at.last, key.series, key.variates);
  steps_ = patches_ > 1 ? patch_ : static_cast<std::int32_t>(horizon_);
  const double weight_size = net_.backend().weight_size();
  cost_ += forward_cost(net_.config(), net_.execution(), context_, steps_, weight_size);
  for (std::int32_t pass = 0; pass < key.passes; ++pass) {
    const std::int32_t first = pass * batch;
    const std::int32_t count = std::min(batch, key.trajectories - first);
    for (std::int32_t patch = 0; patch < key.patches; ++patch) {
      describe_further(g, patch, first, count);
      const auto index = static_cast<std::size_t>(std::int64_t{pass} * key.patches + patch);
      recorder.write_live(further_, g.seed, r.in, r.at.further + index * r.at.further_bytes,
                          key.series, key.variates);
      if (patch == 0) continue;
      steps_ = std::min(patch_, static_cast<std::int32_t>(horizon_) - patch * patch_);
      cost_ += forward_cost(net_.config(), net_.execution(), further_, steps_, weight_size);
    }
  }
}

void Engine::read_results(const Chunk& chunk, const WantedStatistics& wanted, const Recorded& r,
                          Sink& sink) {
  const Stopwatch watch(emit_seconds_);
  const auto horizon = static_cast<std::size_t>(r.key.horizon(patch_));
  const auto stride = static_cast<std::size_t>(r.key.stride());
  const auto exact = static_cast<std::size_t>(r.key.exact_steps(patch_));
  const auto trajectories = static_cast<std::size_t>(r.key.trajectories);
  const auto part = [&](std::size_t at, std::size_t first, std::size_t count) {
    return std::span(reinterpret_cast<const float*>(r.out.host + at) + first, count);
  };
  std::size_t lane = 0;
  for (std::size_t i = 0; i < prepared_.size(); ++i) {
    const auto variates = static_cast<std::size_t>(prepared_[i].variates);
    SeriesResults results;
    results.series = chunk.first + i;
    results.stride = stride;
    results.exact_steps = exact;
    results.horizon = horizon;
    results.trajectories = trajectories;
    if (r.key.exact) {
      results.exact = part(0, lane * exact * stride, variates * exact * stride);
    }
    if (r.key.sampled) {
      const std::size_t each = (horizon - exact) * stride;
      results.sampled = part(r.sampled_at, lane * each, variates * each);
    }
    if (wanted.samples) {
      const std::size_t each = horizon * trajectories;
      results.samples = part(r.samples_at, lane * each, variates * each);
    }
    sink.results(results);
    lane += variates;
  }
}

}  // namespace toto
