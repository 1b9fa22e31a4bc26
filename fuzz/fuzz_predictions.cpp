// SPDX-License-Identifier: Apache-2.0
// Any bytes as a segment of the prediction cache: entries that are written as they were read, or
// misses.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "tools/backtest/prediction_cache.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace toto::backtest;
  const std::string_view text(reinterpret_cast<const char*>(bytes), size);
  const DecodedSegment first = decode_segment(text);
  const DecodedSegment again = decode_segment(encode_segment(first.entries));
  bool same = again.damaged == 0 && again.entries.size() == first.entries.size();
  for (std::size_t i = 0; same && i < first.entries.size(); ++i) {
    same = again.entries[i].key == first.entries[i].key &&
           again.entries[i].values == first.entries[i].values;
  }
  if (!same) std::abort();
  return 0;
}
