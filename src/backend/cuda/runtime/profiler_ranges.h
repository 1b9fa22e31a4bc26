// SPDX-License-Identifier: Apache-2.0
// Spans as NVTX ranges, for Nsight Systems and other tools that are attached to the process.
#pragma once

namespace toto::cuda {

/// Hands every span (core/trace.h) to the tool that is attached, in NVTX's domain "toto", from now
/// on. Does nothing, and says so, where no tool is, or where the build has no NVTX. Loads the tool
/// that NVTX_INJECTION64_PATH names, as any first call of NVTX does.
bool send_spans_to_profiler();

}  // namespace toto::cuda
