// SPDX-License-Identifier: Apache-2.0
// Where the device reads a batch.
#ifdef TOTO_CUDA
#include <algorithm>

#include "backend/cuda/runtime/device_backend.h"
#include "backend/cuda/runtime/live.h"

namespace toto::cuda {

Extent DeviceBackend::extent(const Batch& batch) const {
  if (batch.live != nullptr) {
    return {batch.live, batch.rows, batch.lanes, batch.rows / kQueryGroup + batch.variates,
            batch.lanes / kQueryGroup + batch.variates};
  }
  const LiveLayout layout(batch.count, ids_of(batch));
  std::vector<std::byte> image(layout.bytes);
  Extent e{nullptr, batch.rows, batch.lanes, 0, 0};
  for (std::int32_t i = 0; i < batch.count; ++i) {
    e.groups += query_groups(batch.blocks[i], false);
    e.last_groups += query_groups(batch.blocks[i], true);
  }
  write_image(batch, 0, layout, image.data(), nullptr);
  for (Resident& r : resident_) {
    if (r.image == image) {
      r.used = ++clock_;
      e.live = static_cast<const LiveBatch*>(r.device.get());
      return e;
    }
  }
  Resident& r = *std::min_element(resident_.begin(), resident_.end(),
                                  [](const auto& a, const auto& b) { return a.used < b.used; });
  r.image.clear();
  r.used = ++clock_;
  if (r.device.bytes() < layout.bytes) {
    check(cudaStreamSynchronize(stream_.stream), "waiting for the device");
    r.device = {};  // first, so that there is room for the larger one
    r.device = DeviceMemory(layout.bytes, "memory");
  }
  std::vector<std::byte> placed(layout.bytes);
  write_image(batch, 0, layout, placed.data(), static_cast<const std::byte*>(r.device.get()));
  check(cudaMemcpyAsync(r.device.get(), placed.data(), placed.size(), cudaMemcpyHostToDevice,
                        stream_.stream),
        "upload");
  r.image = std::move(image);
  e.live = static_cast<const LiveBatch*>(r.device.get());
  return e;
}

}  // namespace toto::cuda
#endif
