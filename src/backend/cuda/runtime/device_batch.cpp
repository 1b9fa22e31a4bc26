// SPDX-License-Identifier: Apache-2.0
// How large a launch for a batch must be.
#ifdef TOTO_CUDA
#include <cassert>

#include "backend/batch_image.h"
#include "backend/cuda/runtime/device_backend.h"

namespace toto::cuda {

Extent DeviceBackend::extent(const Batch& batch) const {
  assert(batch.live != nullptr && "a batch on a device lies in its memory");
  return {batch.live,
          batch.rows,
          batch.lanes,
          batch.rows / kQueryGroup + batch.variates,
          batch.lanes / kQueryGroup + batch.variates,
          batch.keys};
}

}  // namespace toto::cuda
#endif
