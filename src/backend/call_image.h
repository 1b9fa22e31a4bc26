// SPDX-License-Identifier: Apache-2.0
// A call of Toto 2.0 as it lies in a staging buffer, for the host and for a device: head, slices,
// first lanes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "backend/ops2.h"

namespace toto {

/// Offsets of the parts of an image with room for so many slices.
struct CallLayout {
  std::size_t slices, first_lanes, bytes;

  explicit CallLayout(std::int64_t count) {
    const auto n = static_cast<std::size_t>(count);
    slices = (sizeof(LiveCall) + 15) / 16 * 16;
    first_lanes = slices + n * sizeof(CallSlice);
    bytes = (first_lanes + (n + 1) * sizeof(std::int32_t) + 255) / 256 * 256;
  }
};

/// Fills the image at `host`, which operations read at `device`.
inline void write_call(std::span<const CallSlice> slices, const CallLayout& layout, std::byte* host,
                       const std::byte* device) {
  LiveCall head;
  head.count = static_cast<std::int32_t>(slices.size());
  head.slices = reinterpret_cast<const CallSlice*>(device + layout.slices);
  head.first_lanes = reinterpret_cast<const std::int32_t*>(device + layout.first_lanes);
  if (!slices.empty()) std::memcpy(host + layout.slices, slices.data(), slices.size_bytes());
  auto* const first_lanes = reinterpret_cast<std::int32_t*>(host + layout.first_lanes);
  first_lanes[0] = 0;
  for (std::size_t i = 0; i < slices.size(); ++i) {
    const CallSlice& s = slices[i];
    head.rows += s.rows();
    head.keys = std::max(head.keys, s.patch + s.tokens - s.first_slot);
    first_lanes[i + 1] = first_lanes[i] + slices[i].variates;
  }
  head.lanes = first_lanes[slices.size()];
  std::memcpy(host, &head, sizeof head);
}

/// The call of an image that has been written.
inline Call call_of_image(const std::byte* host, const std::byte* device, const CallLayout& layout,
                          bool on_device) {
  const auto& head = *reinterpret_cast<const LiveCall*>(host);
  return {reinterpret_cast<const CallSlice*>(host + layout.slices),
          head.count,
          head.rows,
          head.lanes,
          head.keys,
          on_device ? reinterpret_cast<const LiveCall*>(device) : nullptr};
}

}  // namespace toto
