// SPDX-License-Identifier: Apache-2.0
// Attention over time that also does what rotary_append() does, where every lane sees few keys:
// warps read queries, keys and values where their product has left them. That saves a launch and a
// round through memory, and where no call follows these need not go to the cache at all.
#include "backend/cuda/ops/attention.h"
#include "backend/cuda/ops/lane_attention.cuh"

namespace toto::cuda {

using namespace attend;
using OfModel = Room<64, true>;

bool appends_at_once(const Extent& batch, std::int32_t d) {
  return d == OfModel::D && batch.keys > 0 && batch.keys <= kFewKeys;
}

void append_and_attend(const Extent& batch, const RotaryTables& rotary, const float* qkv,
                       const KvLayer& kv, const View& out, std::int32_t heads, std::int32_t d,
                       bool last_only, bool kept, const Stream& s) {
  with_type(out, [&](auto* to) {
    using T = std::remove_pointer_t<decltype(to)>;
    auto* const keys = typed<float>(kv.keys);
    auto* const values = typed<float>(kv.values);
    const Heads<OfModel, T, Appending> h{batch.live, qkv,
                                         keys,       values,
                                         to,         heads,
                                         d,          static_cast<std::int32_t>(out.stride()),
                                         last_only,  {rotary, keys, values, kept}};
    launch_few_keys(batch, h, s);
  });
}

}  // namespace toto::cuda
