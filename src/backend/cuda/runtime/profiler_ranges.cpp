// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/runtime/profiler_ranges.h"

#if defined(TOTO_CUDA) && __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>

#include "core/trace.h"

namespace toto::cuda {
namespace {

/// Null where no tool is attached: then NVTX has nobody to make one.
nvtxDomainHandle_t domain() {
  static const nvtxDomainHandle_t handle = nvtxDomainCreateA("toto");
  return handle;
}

void push(const char* name) noexcept {
  nvtxEventAttributes_t range{};
  range.version = NVTX_VERSION;
  range.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  range.messageType = NVTX_MESSAGE_TYPE_ASCII;
  range.message.ascii = name;
  nvtxDomainRangePushEx(domain(), &range);
}

void pop() noexcept { nvtxDomainRangePop(domain()); }

constexpr SpanRanges kRanges = {push, pop};

}  // namespace

bool send_spans_to_profiler() {
  if (domain() == nullptr) return false;
  SpanRanges::set(&kRanges);
  return true;
}

}  // namespace toto::cuda
#else
namespace toto::cuda {

bool send_spans_to_profiler() { return false; }

}  // namespace toto::cuda
#endif
