// SPDX-License-Identifier: Apache-2.0
// Products as operations of the seam.
#ifdef TOTO_CUDA
#include "backend/cuda/ops/rows.h"
#include "backend/cuda/runtime/device_backend.h"
#include "backend/operation.h"

namespace toto::cuda {

ProductArgs product_of(const Matrix& w, const void* x, void* y, Rows rows, Epilogue epilogue) {
  const auto& matrix = *static_cast<const DeviceMatrix*>(w.weights);
  return {matrix.weights,
          matrix.bias,
          x,
          y,
          rows,
          w.out,
          epilogue == Epilogue::gated ? matrix.stored : w.out,
          matrix.in,
          matrix.pitch,
          epilogue,
          matrix.operands};
}

namespace {

void multiply(const ProductArgs& args, bool bf16, const Stream& stream) {
  if (bf16) {
    product_bf16(args, stream);
  } else {
    product_f32(args, stream);
  }
}

}  // namespace

void DeviceBackend::linear(const Matrix& w, const void* x, void* y, Rows rows,
                           Epilogue epilogue) const {
  const OperationSpan span(Operation::linear);
  const auto& matrix = *static_cast<const DeviceMatrix*>(w.weights);
  multiply(product_of(w, x, y, rows, epilogue), matrix.bf16, stream_);
}

void DeviceBackend::norm_linear(const void* x, const void* gain, void* normed, const Matrix& w,
                                void* y, Rows rows, Epilogue epilogue) const {
  const OperationSpan span(Operation::norm_linear);
  const auto& matrix = *static_cast<const DeviceMatrix*>(w.weights);
  if (w.in != kNormedWidth) {
    rms_norm(x, gain, normed, rows, w.in);
    linear(w, normed, y, rows, epilogue);
    return;
  }
  ProductArgs args = product_of(w, x, y, rows, epilogue);
  if (rows.count <= kFewRows) {
    args.gain = floats(gain);
    if (matrix.bf16 ? few_rows_bf16(args, stream_) : few_rows_f32(args, stream_)) return;
    args.gain = nullptr;
  }
  float* const inverse = floats(normed) + std::int64_t{rows.count} * w.in;
  norm_later(floats(x), floats(gain), normed, inverse, bf16(), rows, stream_);
  args.x = normed;
  args.scale = inverse;
  multiply(args, matrix.bf16, stream_);
}

}  // namespace toto::cuda
#endif
