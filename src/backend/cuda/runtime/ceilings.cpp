// SPDX-License-Identifier: Apache-2.0
// What the device does at best, by its own clock: copies, and the library's own products. Nothing
// of cuBLAS is here; it reaches more (docs/benchmarks.md).
#ifdef TOTO_CUDA
#include <algorithm>
#include <array>
#include <new>
#include <vector>

#include "backend/cuda/gemm/stream.cuh"
#include "backend/cuda/runtime/cuda_backend.h"
#include "backend/cuda/runtime/driver.h"
#include "backend/cuda/runtime/owners.h"
#include "backend/graph_capture.h"
#include "core/status_file.h"

namespace toto {
namespace {

using cuda::check;
using cuda::DeviceMemory;

constexpr int kTimed = 9;        // of which the median counts
constexpr double kWarmUp = 0.1;  // seconds on the device until its clocks are up
constexpr int kMaxWarmUps = 200;

template <typename Work>
double median_seconds(const Work& work) {
  double warm = 0;
  for (int i = 0; i < kMaxWarmUps && warm < kWarmUp; ++i) warm += work();
  std::array<double, kTimed> times{};
  for (double& time : times) time = work();
  std::sort(times.begin(), times.end());
  return times[kTimed / 2];
}

/// 0 where memory does not suffice, or the clock did not move.
template <typename Measurement>
double rate_or_0(const Measurement& measurement) {
  try {
    const auto [amount, seconds] = measurement();
    return seconds > 0 ? amount / seconds : 0;
  } catch (const std::bad_alloc&) {
    return 0;
  }
}

struct Work {
  double amount = 0, seconds = 0;
};

// --- copies ---

DeviceMemory filled_memory(std::size_t bytes) {
  DeviceMemory memory(bytes, "memory");
  check(cudaMemset(memory.get(), 0x5A, bytes), "memory");
  return memory;
}

/// Within the device, of pieces that its cache holds a small part of; bytes read and written.
Work copies(std::size_t cache) {
  constexpr std::size_t kMaxBytes = std::size_t{1} << 30;
  constexpr std::size_t kCaches = 4;
  constexpr std::size_t kUnit = std::size_t{1} << 20;
  std::size_t available = 0, all = 0;
  check(cudaMemGetInfo(&available, &all), "memory");
  const std::size_t bytes = std::min(kMaxBytes, available / 4) / kUnit * kUnit;
  if (bytes == 0 || bytes < kCaches * cache) return {};
  const DeviceMemory from = filled_memory(bytes);
  const DeviceMemory to = filled_memory(bytes);
  const cuda::StreamOwner stream = cuda::make_stream();
  const cuda::Event first = cuda::make_event();
  const cuda::Event last = cuda::make_event();
  check(cudaDeviceSynchronize(), "waiting for the device");
  const double seconds = median_seconds([&] {
    check(cudaEventRecord(first.get(), stream.get()), "event");
    check(cudaMemcpyAsync(to.get(), from.get(), bytes, cudaMemcpyDeviceToDevice, stream.get()),
          "copy");
    check(cudaEventRecord(last.get(), stream.get()), "event");
    check(cudaStreamSynchronize(stream.get()), "waiting for the device");
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, first.get(), last.get()), "event");
    return static_cast<double>(milliseconds) * 1e-3;
  });
  return {2.0 * static_cast<double>(bytes), seconds};
}

// --- products ---

/// The two products of the published model's MLP, of as many rows as a large batch has.
struct Product {
  std::int32_t out, in;
  Epilogue use;
};
constexpr std::int32_t kRows = 8192;
constexpr int kRepeats = 8;  // in one recording
constexpr std::array kProducts = {Product{6144, 768, Epilogue::gated},
                                  Product{768, 3072, Epilogue::store}};

/// Activations of the backend.
class Activations {
 public:
  Activations(Backend& backend, std::int32_t rows, std::int32_t width)
      : backend_(backend),
        view_{backend.allocate(static_cast<std::size_t>(rows) * static_cast<std::size_t>(width) *
                               backend.element_size()),
              backend.element_type(), width, rows} {}
  ~Activations() { backend_.release(view_.data); }
  Activations(const Activations&) = delete;
  Activations& operator=(const Activations&) = delete;
  [[nodiscard]] const View& get() const { return view_; }

 private:
  Backend& backend_;
  View view_;
};

/// Uniform in [-1, 1), the same in every run: how much a device draws, and so how fast it is,
/// depends on the bits (zeros are fastest).
void randomise(std::span<float> values, std::uint64_t seed) {
  std::uint64_t state = seed;
  for (float& value : values) {  // splitmix64
    state += 0x9E3779B97F4A7C15U;
    std::uint64_t z = state;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9U;
    z = (z ^ z >> 27) * 0x94D049BB133111EBU;
    z ^= z >> 31;
    value = static_cast<float>(z >> 40) * 0x1p-23F - 1.0F;
  }
}

Work products(Backend& backend, const Product& p) {
  GraphCapture& capture = *backend.capture();
  const auto cells = [](std::int32_t rows, std::int32_t columns) {
    return static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns);
  };
  auto weights = std::make_unique<float[]>(cells(p.out, p.in));
  randomise({weights.get(), cells(p.out, p.in)}, 1);
  const Matrix matrix = backend.upload_matrix(std::move(weights), p.out, p.in, {}, p.use);
  const bool gated = p.use == Epilogue::gated;
  const ElementType operands = backend.operand_type(matrix);
  const Activations room(backend, kRows, p.in);
  const Activations room_y(backend, kRows, p.out);
  const View normed = room.get().as(operands, kRows, p.in);
  const View y =
      room_y.get().as(gated ? operands : backend.element_type(), kRows, gated ? p.out / 2 : p.out);
  {
    std::vector<float> values(cells(kRows, p.in));
    randomise(values, 2);
    const Activations x(backend, kRows, p.in);
    const Activations gain(backend, 1, p.in);
    backend.upload(std::span<const float>(values), x.get());
    backend.upload(std::span<const float>(std::vector<float>(static_cast<std::size_t>(p.in), 1.0F)),
                   gain.get());
    backend.rms_norm(x.get(), gain.get(), normed);
  }
  backend.linear(matrix, normed, y, p.use);
  capture.begin();
  try {
    for (int i = 0; i < kRepeats; ++i) {
      backend.linear(matrix, normed, y, p.use);
    }
  } catch (...) {
    capture.abandon();
    throw;
  }
  const auto graph = capture.end();
  const double seconds = median_seconds([&] { return capture.replay(*graph, true, {}); });
  return {2.0 * kRepeats * kRows * p.out * p.in, seconds};
}

double best_products(CudaWeights weights) {
  double best = 0;
  for (const Product& p : kProducts) {
    best = std::max(best, rate_or_0([&] {
                      const auto backend = make_cuda_backend({weights, 1});
                      return products(*backend, p);
                    }));
  }
  return best;
}

cudaDeviceProp properties_of_device() {
  cudaDeviceProp properties{};
  int device = 0;
  check(cudaGetDevice(&device), "device");
  check(cudaGetDeviceProperties(&properties, device), "device properties");
  return properties;
}

}  // namespace

DeviceCeilings cuda_device() {
  DeviceCeilings c;
  c.architecture = make_cuda_backend({CudaWeights::f32, 1})->isa();  // throws without a device
  const cudaDeviceProp properties = properties_of_device();
  int version = 0;
  check(cudaDriverGetVersion(&version), "driver");
  c.device = properties.name;
  c.driver =
      cuda::driver_name(status_field("/proc/driver/nvidia/version", "NVRM version"), version);
  return c;
}

DeviceCeilings cuda_ceilings() {
  DeviceCeilings c = cuda_device();
  c.f32_flops = best_products(CudaWeights::f32);
  c.tf32_flops = best_products(CudaWeights::tf32);
  c.bf16_flops = best_products(CudaWeights::bf16);
  const auto cache = static_cast<std::size_t>(std::max(properties_of_device().l2CacheSize, 0));
  c.copy_bytes = rate_or_0([&] { return copies(cache); });
  return c;
}

}  // namespace toto
#endif
