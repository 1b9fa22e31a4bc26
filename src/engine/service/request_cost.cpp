// SPDX-License-Identifier: Apache-2.0
#include "engine/service/request_cost.h"

#include <algorithm>

namespace toto {
namespace {

/// Of the answer, on the host.
std::size_t forecast_bytes(const Request& request, std::int32_t components) {
  const ForecastOptions& o = request.options;
  const std::size_t cells = request.series.variates * o.horizon;
  std::size_t bytes = cells * sizeof(float) * statistic_rows(o);
  if (o.keep_samples) bytes += cells * sizeof(float) * o.num_samples;
  if (o.keep_parameters) {
    bytes += cells * sizeof(double) * (4 * static_cast<std::size_t>(std::max(components, 1)) + 2);
  }
  return bytes;
}

}  // namespace

RequestCost::RequestCost(const Network& net, const ModelDefaults& defaults)
    : net_(net), program_(net.program()), writer_(net, defaults) {}

Estimate RequestCost::of(const Request& request, bool bytes) const {
  const SeriesRequest asked = writer_.request_of(request.series, request.options);
  const Generation generation = writer_.generation_of(request.options);
  check_paths(net_, generation);
  Item item = item_of(asked, 0, net_.patch());
  program_->check(item);
  item.level_count = static_cast<std::int32_t>(request.options.levels.size() + 1);  // the median
  MicroBatch batch;
  batch.mean = generation.mean;
  batch.cached = generation.cached;
  batch.exact = generation.exact;
  take_into(batch, item, asked, batch.exact ? net_.exact_steps(item.horizon) : 0);
  batch.coherent = generation.coherent && batch.trajectories > 0;
  batch.items = {&item, 1};
  Estimate estimate;
  const auto passes = static_cast<std::int64_t>(request.options.views.passes());
  estimate.cost = static_cast<double>(passes * program_->tokens(item, batch));
  if (!bytes) return estimate;
  ProgramKey key;
  key.plan = program_->need(batch);
  program_->size(batch, key);
  const ResultLayout results(key, net_.patch());
  estimate.bytes = program_->lay_out(key.plan, nullptr, {}, nullptr)->bytes +
                   program_->table_bytes(program_->tables_of(key.plan)) +
                   program_->input_bytes(key) + results.bytes(key) +
                   (key.samples ? 0 : results.samples_bytes) +
                   forecast_bytes(request, net_.components());
  return estimate;
}

}  // namespace toto
