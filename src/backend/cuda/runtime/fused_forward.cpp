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
                          const Rotary& rotary, std::span<const KvLayer> kv, const void* scaled,
                          void* hidden, void* tokens, std::int32_t outs, void* y,
                          EarlyResults& early) const {
  const auto& prepared = static_cast<const DeviceStack&>(stack);
  const FusedForward& fused = *prepared.fused;
  if (all.rows > fused.max_rows()) return false;
  const OperationSpan span(Operation::stack);
  if (!fused.embeds()) {
    linear(prepared.embed, scaled, hidden, all.all_rows(), Epilogue::store);
    if (prepared.labels != nullptr) set_labels(all, prepared.labels, hidden, prepared.embed.out);
  }
  const LiveBatch* const rows = extent(all).live;
  fused.run({rows, extent(last).live, all.rows, rotary, kv,
             floats(fused.embeds() ? scaled : hidden), floats(tokens), outs, floats(y)},
            stream_);
  early = {y, prepared.words.first == nullptr ? nullptr : &stack, stream_.launches};
  if (!fused.multiplies_after()) {
    Matrix after = prepared.after;
    after.out = outs;
    linear(after, tokens, y, last.all_lanes(), Epilogue::store);
  }
  return true;
}

}  // namespace toto::cuda
#endif
