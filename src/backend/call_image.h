// SPDX-License-Identifier: Apache-2.0
// A call of Toto 2.0 as it lies in a staging buffer, for the host and for a device: head, slices,
// first lanes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

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

/// Writes an image at `host`, which operations read at `device`.
class CallImage {
 public:
  CallImage(const CallLayout& layout, std::byte* host, const std::byte* device)
      : host_(host),
        slices_(reinterpret_cast<CallSlice*>(host + layout.slices)),
        first_lanes_(reinterpret_cast<std::int32_t*>(host + layout.first_lanes)) {
    head_.slices = reinterpret_cast<const CallSlice*>(device + layout.slices);
    head_.first_lanes = reinterpret_cast<const std::int32_t*>(device + layout.first_lanes);
    first_lanes_[0] = 0;
  }

  /// Where the next slice goes, and its first row.
  [[nodiscard]] std::int32_t count() const { return head_.count; }
  [[nodiscard]] std::int32_t rows() const { return head_.rows; }
  /// Makes room for it. `keys`: that its tokens see.
  void add(std::int32_t variates, std::int32_t tokens, std::int32_t keys) {
    head_.rows += variates * tokens;
    head_.lanes += variates;
    head_.keys = std::max(head_.keys, keys);
    first_lanes_[++head_.count] = head_.lanes;
  }
  /// A slice that there is room for; all of them are written before the call is used.
  [[nodiscard]] CallSlice& slice(std::int32_t index) { return slices_[index]; }
  /// After the last add().
  void finish() { std::memcpy(host_, &head_, sizeof head_); }

 private:
  std::byte* host_;
  LiveCall head_;
  CallSlice* slices_;
  std::int32_t* first_lanes_;
};

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
