// SPDX-License-Identifier: Apache-2.0
// The device itself, its memory and its weights. Operations: device_backend.h says where.
#ifdef TOTO_CUDA
#include "backend/cuda/runtime/device_backend.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <new>
#include <string>

#include "backend/cuda/gemm/tensor_map.h"
#include "backend/cuda/runtime/device_failure.h"
#include "backend/cuda/runtime/profiler_ranges.h"
#include "backend/expected_views.h"
#include "toto/error.hpp"

namespace toto::cuda {
namespace {

/// The oldest architecture there are kernels for.
constexpr int kOldestMajor = 8;

std::string describe(cudaError_t status) {
  std::string text = cudaGetErrorName(status);
  text += ": ";
  text += cudaGetErrorString(status);
  return text;
}

/// Nearest even.
std::uint16_t to_bf16(float x) {
  auto bits = std::bit_cast<std::uint32_t>(x);
  if ((bits & 0x7FFFFFFFU) > 0x7F800000U) return static_cast<std::uint16_t>(bits >> 16 | 0x40U);
  bits += 0x7FFFU + (bits >> 16 & 1U);
  return static_cast<std::uint16_t>(bits >> 16);
}

/// Row `row` of a matrix as it is stored comes from this row; -1: there is none.
std::int32_t source_row(std::int32_t row, std::int32_t out, bool gated, bool bf16) {
  if (!gated) return row;
  const std::int32_t half = out / 2;
  const std::int32_t group = bf16 ? 8 : 1;
  const std::int32_t column = row / (2 * group) * group + row % group;
  if (column >= half) return -1;
  return row / group % 2 == 0 ? column : half + column;
}

}  // namespace

static_assert(cudaErrorIllegalAddress == 700 && cudaErrorLaunchFailure == 719,
              "device_failure.cpp has the numbers of these errors");

void check(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  cudaGetLastError();  // what can be forgotten is
  if (status == cudaErrorMemoryAllocation) throw std::bad_alloc();
  throw device_failure(status, what, describe(status));
}

DeviceBackend::DeviceBackend(const CudaOptions& options)
    : type_(options.weights),
      index_(options.device),
      device_("cuda:" + std::to_string(index_)),
      team_(options.threads) {
  const OnDevice on(*this);
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, index_), "device properties");
  architecture_ = "sm_";
  architecture_ += std::to_string(properties.major * 10 + properties.minor);
  stream_.overlap = properties.major >= 9;
  stream_.hopper = properties.major == 9;
  stream_.shared_bytes = static_cast<int>(properties.sharedMemPerBlockOptin);
  stream_.processors = properties.multiProcessorCount;
  owned_stream_ = make_stream();
  stream_.stream = owned_stream_.get();
  send_spans_to_profiler();
}

std::uint64_t DeviceBackend::device_bytes() const {
  const OnDevice on(*this);
  std::size_t left = 0;
  std::size_t all = 0;
  check(cudaMemGetInfo(&left, &all), "memory in use");
  return all - left;
}

int DeviceBackend::bind() const {
  int current = 0;
  check(cudaGetDevice(&current), "device");
  if (current != index_) check(cudaSetDevice(index_), "device");
  return current;
}

void DeviceBackend::unbind(int previous) const noexcept {
  if (previous != index_) cudaSetDevice(previous);
}

DeviceBackend::~DeviceBackend() {
  cudaStreamSynchronize(stream_.stream);  // before what its kernels read is given back
}

void DeviceBackend::for_each_share(std::int64_t count, ShareWork work, const void* context) const {
  if (count <= 0) return;
  const int threads = static_cast<int>(std::min<std::int64_t>(count, team_.size()));
  team_.run(threads, [&](int thread) noexcept {
    const Range range = share(count, threads, thread);
    work(context, range.begin, range.end, thread);
  });
}

void* DeviceBackend::allocate(std::size_t bytes) {
  const OnDevice on(*this);
  DeviceMemory memory(bytes, "memory");
  check(cudaMemsetAsync(memory.get(), 0, memory.bytes(), stream_.stream), "memory");
  return memory.release();
}

void DeviceBackend::release(void* memory) noexcept {
  cudaStreamSynchronize(stream_.stream);
  const DeviceMemory given_back = DeviceMemory::adopt(memory);
}

void DeviceBackend::wait() const {
  host_reads_.fetch_add(1, std::memory_order_relaxed);
  check(cudaStreamSynchronize(stream_.stream), "waiting for the device");
}

// Copies from memory that is not pinned are staged before these return.
void DeviceBackend::upload(std::span<const float> from, const View& to) const {
  expected::activations(*this, "upload: to", to, from.size());
  if (from.empty()) return;
  const OnDevice on(*this);
  check(cudaMemcpyAsync(to.data, from.data(), from.size_bytes(), cudaMemcpyHostToDevice,
                        stream_.stream),
        "upload");
}

void DeviceBackend::upload(std::span<const double> from, const View& to) const {
  const std::vector<float> narrow(from.begin(), from.end());
  upload(std::span<const float>(narrow), to);
}

void DeviceBackend::upload_bytes(std::span<const std::uint8_t> from, std::uint8_t* to) const {
  if (from.empty()) return;
  const OnDevice on(*this);
  check(cudaMemcpyAsync(to, from.data(), from.size(), cudaMemcpyHostToDevice, stream_.stream),
        "upload");
}

void DeviceBackend::download(const ConstView& from, std::span<double> to) const {
  expected::activations(*this, "download: from", from, to.size());
  std::vector<float> narrow(to.size());
  const OnDevice on(*this);
  check(cudaMemcpyAsync(narrow.data(), from.data, narrow.size() * sizeof(float),
                        cudaMemcpyDeviceToHost, stream_.stream),
        "download");
  wait();
  std::copy(narrow.begin(), narrow.end(), to.begin());
}

void DeviceBackend::download_bytes(const std::uint8_t* from, std::span<std::uint8_t> to) const {
  const OnDevice on(*this);
  check(cudaMemcpyAsync(to.data(), from, to.size(), cudaMemcpyDeviceToHost, stream_.stream),
        "download");
  wait();
}

Matrix DeviceBackend::keep_matrix(const float* weights, std::int32_t out, std::int32_t in,
                                  std::span<const float> bias, Epilogue use, CudaWeights type) {
  const OnDevice on(*this);
  const bool bf16 = type == CudaWeights::bf16;
  const bool gated = use == Epilogue::gated;
  const std::int32_t unit = bf16 ? kPitchBf16 : kPitchF32;
  auto kept = std::make_unique<KeptMatrix>();
  DeviceMatrix* const matrix = &kept->matrix;
  matrix->stored = gated && bf16 ? padded_bf16(out / 2) * 2 : out;
  matrix->in = in;
  matrix->pitch = (in + unit - 1) / unit * unit;
  matrix->bf16 = bf16;
  // Whatever the number of rows, so that it changes no bit.
  if (stream_.hopper && in % 4 == 0 && out % 4 == 0 && tensor_map_encoder() != nullptr) {
    matrix->operands = operands_of(type);
  }
  const std::size_t rows = static_cast<std::size_t>(matrix->stored);
  const std::size_t count = rows * static_cast<std::size_t>(matrix->pitch);
  std::vector<float> wide(bf16 ? 0 : count, 0.0F);
  std::vector<std::uint16_t> narrow(bf16 ? count : 0, 0);
  std::vector<float> biases(bias.empty() ? 0 : rows, 0.0F);
  for (std::int32_t row = 0; row < matrix->stored; ++row) {
    const std::int32_t from = source_row(row, out, gated, bf16);
    if (from < 0) continue;
    const float* const values = weights + std::int64_t{from} * in;
    const std::ptrdiff_t to = std::ptrdiff_t{row} * matrix->pitch;
    if (bf16) {
      std::transform(values, values + in, narrow.begin() + to, to_bf16);
    } else {
      std::copy(values, values + in, wide.begin() + to);
    }
    if (!bias.empty()) {
      biases[static_cast<std::size_t>(row)] = bias[static_cast<std::size_t>(from)];
    }
  }
  if (matrix->operands != Operands::whole) {
    for (float& v : wide) v = std::bit_cast<float>(std::bit_cast<std::uint32_t>(v) + kHighHalf);
  }
  const void* const packed = bf16 ? static_cast<const void*>(narrow.data()) : wide.data();
  const std::size_t bytes = count * (bf16 ? sizeof(std::uint16_t) : sizeof(float));
  kept->weights = DeviceMemory(bytes, "weights");
  matrix->weights = kept->weights.get();
  if (!bias.empty()) {
    kept->bias = DeviceMemory(rows * sizeof(float), "weights");
    matrix->bias = static_cast<float*>(kept->bias.get());
  }
  // In the order of the stream: a copy outside it may still be under way when it has returned.
  const auto send = [&](void* to, const void* from, std::size_t size) {
    check(cudaMemcpyAsync(to, from, size, cudaMemcpyHostToDevice, stream_.stream), "weights");
  };
  send(matrix->weights, packed, bytes);
  if (!bias.empty()) send(matrix->bias, biases.data(), rows * sizeof(float));
  check(cudaStreamSynchronize(stream_.stream), "weights");  // what is sent ends here
  matrices_.push_back(std::move(kept));
  return {matrix, out, in};
}

Matrix DeviceBackend::upload_matrix(std::unique_ptr<float[]> take, std::int32_t out,
                                    std::int32_t in, std::span<const float> bias, Epilogue use) {
  return keep_matrix(take.get(), out, in, bias, use, type_);
}

Matrix DeviceBackend::upload_exact_matrix(std::unique_ptr<float[]> take, std::int32_t out,
                                          std::int32_t in, std::span<const float> bias,
                                          Epilogue use) {
  return keep_matrix(take.get(), out, in, bias, use, CudaWeights::f32);
}

}  // namespace toto::cuda

namespace toto {

std::string cuda_unavailable() {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  cudaGetLastError();
  int driver = 0;
  if (status == cudaErrorInsufficientDriver && cudaDriverGetVersion(&driver) == cudaSuccess) {
    return cuda::refused_driver(driver);
  }
  if (count == 0 || status == cudaErrorNoDevice) return "there is no CUDA device";
  if (status != cudaSuccess) return cuda::describe(status);
  cudaDeviceProp properties{};
  if (cudaGetDeviceProperties(&properties, 0) != cudaSuccess) {
    cudaGetLastError();
    return "the CUDA device cannot be asked for its properties";
  }
  if (properties.major >= cuda::kOldestMajor) return {};
  return cuda::old_device(properties.name, properties.major, properties.minor);
}

int cuda_devices() {
  if (!cuda_unavailable().empty()) return 0;
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess) count = 0;
  return count;
}

std::unique_ptr<Backend> make_cuda_backend(const CudaOptions& options) {
  std::string why = cuda_unavailable();
  if (why.empty() && (options.device < 0 || options.device >= cuda_devices())) {
    why = fmt::format("there is no GPU cuda:{}", options.device);
  }
  if (!why.empty()) {
    throw Error(ExitStatus::device_unavailable, "device_unavailable", why, "CUDA",
                "use --device cpu");
  }
  return std::make_unique<cuda::DeviceBackend>(options);
}

}  // namespace toto
#endif
