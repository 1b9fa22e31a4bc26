// SPDX-License-Identifier: Apache-2.0
// Products as operations of the seam.
#ifdef TOTO_CUDA
#include "backend/cuda/ops/rows.h"
#include "backend/cuda/runtime/device_backend.h"
#include "backend/expected_views.h"
#include "backend/operation.h"

namespace toto::cuda {

ProductArgs product_of(const Matrix& w, const ConstView& x, const View& y, Epilogue epilogue) {
  const auto& matrix = *static_cast<const DeviceMatrix*>(w.weights);
  return {matrix.weights,
          matrix.bias,
          x.data,
          y.data,
          x.rows,
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

void DeviceBackend::linear(const Matrix& w, const ConstView& x, const View& y,
                           Epilogue epilogue) const {
  const OperationSpan span(Operation::linear);
  expected::linear(*this, w, x, y, epilogue);
  multiply(product_of(w, x, y, epilogue), operand_type(w) == ElementType::bf16, stream_);
}

void DeviceBackend::norm_linear(const ConstView& x, const ConstView& gain, const View& scratch,
                                const Matrix& w, const View& y, Epilogue epilogue) const {
  const OperationSpan span(Operation::norm_linear);
  expected::norm_linear(*this, x, gain, scratch, w, y, epilogue);
  const View normed = scratch.as(operand_type(w), x.rows, w.in);
  if (w.in != kNormedWidth) {
    rms_norm(x, gain, normed);
    linear(w, normed, y, epilogue);
    return;
  }
  const bool narrow = normed.type == ElementType::bf16;
  ProductArgs args = product_of(w, x, y, epilogue);
  if (x.rows.count <= kFewRows) {
    args.gain = floats(gain);
    if (narrow ? few_rows_bf16(args, stream_) : few_rows_f32(args, stream_)) return;
    args.gain = nullptr;
  }
  float* const inverse = floats(scratch) + x.elements();
  norm_later(floats(x), floats(gain), normed, inverse, x.rows, stream_);
  args.x = normed.data;
  args.scale = inverse;
  multiply(args, narrow, stream_);
}

}  // namespace toto::cuda
#endif
