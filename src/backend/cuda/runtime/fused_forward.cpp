// SPDX-License-Identifier: Apache-2.0
// The operation that a fused forward carries out, where this build and model have one.
#ifdef TOTO_CUDA
#include "backend/cuda/runtime/device_backend.h"
#include "backend/operation.h"

namespace toto::cuda {

const PreparedStack* DeviceBackend::prepare_stack(const StackWeights& weights) {
  const OnDevice on(*this);
  auto made = std::make_unique<DeviceStack>();
  made->fused = make_fused_forward(weights, type_, stream_);
  if (made->fused == nullptr) return nullptr;
  made->embed = weights.embed;
  made->labels = weights.labels;
  made->after = weights.after;
  made->words = made->fused->words_after();
  return stacks_.emplace_back(std::move(made)).get();
}

bool DeviceBackend::stack(const PreparedStack& stack, const Batch& all, const Batch& last,
                          const Rotary& rotary, std::span<const KvLayer> kv,
                          const ConstView& scaled, const View& hidden, const View& tokens,
                          const View& y, EarlyResults& early) const {
  const auto& prepared = static_cast<const DeviceStack&>(stack);
  const FusedForward& fused = *prepared.fused;
  if (all.rows > fused.max_rows()) return false;
  const OperationSpan span(Operation::stack);
  const std::int32_t width = prepared.embed.out;
  const bool trims = &last != &all;
  const Rows ends = trims ? last.all_lanes() : all.all_rows();
  expect("stack: scaled", scaled, ElementType::f32, all.rows, prepared.embed.in);
  expect("stack: hidden", hidden, ElementType::f32, all.rows, width);
  expect("stack: tokens", tokens, ElementType::f32, ends.count, width);
  expect("stack: y", y, ElementType::f32, ends.count, y.width);
  if (!fused.embeds()) {
    linear(prepared.embed, scaled.shaped(all.all_rows(), scaled.width), hidden, Epilogue::store);
    if (prepared.labels) set_labels(all, prepared.labels, hidden);
  }
  const LiveBatch* const rows = extent(all).live;
  fused.run({rows, trims ? extent(last).live : nullptr, all.rows, tables_of(rotary), kv,
             fused.embeds() ? floats(scaled) : floats(hidden), floats(tokens), y.width, floats(y)},
            stream_);
  early = {y, prepared.words.first == nullptr ? nullptr : &stack, stream_.launches};
  if (!fused.multiplies_after()) {
    Matrix after = prepared.after;
    after.out = y.width;
    linear(after, tokens.shaped(ends, width), y, Epilogue::store);
  }
  return true;
}

}  // namespace toto::cuda
#endif
