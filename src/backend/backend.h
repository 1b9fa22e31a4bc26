// SPDX-License-Identifier: Apache-2.0
// The seam between the forward pass and the hardware: memory, weights, and about a dozen
// operations.
//
// Rules for every implementation (tests/engine/seam_rules_test.cpp):
//   - operations allocate nothing and keep no state; scratch memory is passed in;
//   - sizes and positions are read from the Batch (memory the backend can see), not baked in;
//   - a row's bits are a function of that row's inputs, never of how many rows there are;
//   - what is read and written has a type and a size (view.h): activations are of element_type()
//     (float32, or float64 in the reference for float64), inputs of products of operand_type(); an
//     operation that is handed anything else throws Error view_type, view_size (70).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "backend/batch.h"
#include "backend/view.h"

namespace toto {

class Ops2;           // backend/ops2.h
class PathOps;        // backend/path_ops.h
struct FoldedMatrix;  // backend/folded_matrix.h

/// What a backend makes of a matrix and its bias; each has a type of its own that begins with this.
struct PackedWeights {};

/// Weights as a backend keeps them: y[out] = W[out][in] x + bias. A copy with a smaller `out` is
/// valid and means the first rows (never with Epilogue::gated).
struct Matrix {
  const PackedWeights* weights = nullptr;
  std::int32_t out = 0;
  std::int32_t in = 0;
};

/// Keys and values of one time layer.
struct KvLayer {
  View keys;    // [..][d]; Block says where
  View values;  // [..][d]
};

/// The weights of one layer (spec A7).
struct LayerWeights {
  bool space = false;  // attention over variates instead of time
  ConstView norm1;     // [1][D]
  ConstView norm2;     // [1][D]
  Matrix qkv;          // [3][H][d] x D: heads contiguous, unlike the file (spec A2.1)
  Matrix out;          // D x D
  Matrix mlp_in;       // 2M x D, gate first
  Matrix mlp_out;      // D x M
};

/// What comes before the head (spec A5-A7), and the head's first product.
struct StackWeights {
  Matrix embed;      // D x P
  ConstView labels;  // [2][D], see Backend::set_labels(); or nothing
  std::span<const LayerWeights> layers;
  std::int32_t heads = 0;
  std::int32_t head_dim = 0;
  Matrix after;  // of the last tokens
};

/// Rotary and xPos tables (spec A8) for positions 0 .. positions-1.
struct Rotary {
  ConstView cosine;  // [positions][pairs]: of float32 angles; in Toto 1 d/2 pairs
  ConstView sine;    // [positions][pairs]
  ConstView factor;  // [2*positions][pairs]: base^((t - centre)/512) at t - centre + positions
  std::int32_t positions = 0;
};

/// What the head leaves of a step: parameters of its distribution, or what they are formed of
/// (spec A10), for a mixture or for a single component.
enum class HeadOutput { parameters, mixture, single };

/// A network that Backend::prepare_stack() has made ready; each backend has a type of its own.
class PreparedStack {
 public:
  PreparedStack() = default;
  virtual ~PreparedStack() = default;
  PreparedStack(const PreparedStack&) = delete;
  PreparedStack& operator=(const PreparedStack&) = delete;
};

/// Results of Backend::stack() that the operation right after it may read while they are formed.
struct EarlyResults {
  ConstView results;                  // `y` of stack(); or nothing, which can be read early
  const PreparedStack* by = nullptr;  // which knows where
  std::uint64_t launches = 0;  // of the backend up to then: no other operation has come between
};

/// What Backend::exact_statistics() begins with.
struct HeadResults {
  // NOLINTNEXTLINE(google-explicit-constructor): usually it is no more than that
  HeadResults(HeadOutput left, const EarlyResults& results = {}) : output(left), early(results) {}
  HeadOutput output;
  EarlyResults early;
};

/// What a linear operation does with its result.
enum class Epilogue {
  store,     // y = Wx + b
  residual,  // y += Wx + b
  gated,     // y[out/2] = silu(first half) * second half  (spec A7.2)
};

struct ScalerSpec {
  enum class Kind : std::int32_t { causal_patch, causal_step, global };
  Kind kind = Kind::causal_patch;
  std::int32_t patch = 0;  // P
  bool stabilize_with_global = true;
  double exponent = 10.0;
};

/// What the scaler carries from token to token, for each (trajectory, variate). All in float64.
struct ScalerState {
  double count = 0, sum = 0, m2 = 0, mean = 0;  // of the valid values so far
  double lower = 0, upper = 0;                  // the global clamp; 0 and +inf where there is none
  double loc = 0, scale = 0;                    // of the global scaler
};

struct PatchShape {
  std::int32_t patch = 0;       // P
  std::int32_t components = 0;  // K
  std::int32_t steps = 0;       // steps of the patch that are needed, 1..P
};

/// What the scaler gives.
struct ScalerOutputs {
  View values;      // [rows][P]
  View loc;         // [rows][P]
  View scale;       // [rows][P]
  View last_loc;    // [lanes][P]: of the last token of each lane
  View last_scale;  // [lanes][P]
};

/// Host memory for the inputs or the results of a forecast, and the device's copy of it. On a host
/// backend the two sides are one.
struct Staging {
  std::byte* host = nullptr;
  std::byte* device = nullptr;
  std::size_t bytes = 0;
};

/// Quantile levels of all requests of a batch. Those of a block are `level_count` ascending ones
/// from `level_first` on.
struct Levels {
  const double* values = nullptr;  // in memory that operations read
  std::int32_t max = 0;            // the most that a block has
};

/// The sizes of kept trajectories: [variates][horizon][samples]. Upper bounds over all series.
struct KeptShape {
  std::int32_t horizon = 0;
  std::int32_t samples = 0;
};

/// What the statistics operations can do at most.
struct StatisticsLimits {
  std::int32_t samples = std::numeric_limits<std::int32_t>::max();
  std::int32_t components = std::numeric_limits<std::int32_t>::max();
};

class GraphCapture;

class Backend {
 public:
  virtual ~Backend() = default;

  [[nodiscard]] virtual std::string_view name() const = 0;
  /// The type of activations.
  [[nodiscard]] virtual ElementType element_type() const = 0;
  /// Bytes of one activation.
  [[nodiscard]] std::size_t element_size() const { return size_of(element_type()); }
  /// The type of what products with this matrix take.
  [[nodiscard]] virtual ElementType operand_type(const Matrix& /*w*/) const {
    return element_type();
  }
  /// Bytes of one weight of a matrix.
  [[nodiscard]] virtual double weight_size() const = 0;

  // --- threads ---

  /// How many shares for_each_share() may work on at once.
  [[nodiscard]] virtual int workers() const { return 1; }
  /// Work of the caller's own on this backend's threads: calls work(context, begin, end, worker)
  /// for shares that cover [0, count), each on another worker (0 .. workers()-1). `work` must not
  /// throw.
  using ShareWork = void (*)(const void* context, std::int64_t begin, std::int64_t end, int worker);
  virtual void for_each_share(std::int64_t count, ShareWork work, const void* context) const {
    work(context, 0, count, 0);
  }
  /// How often a thread of the team gave up waiting for work and slept.
  [[nodiscard]] virtual std::uint64_t thread_parks() const { return 0; }

  // --- which device ---

  /// Makes its device the current one of the calling thread; returns what unbind() takes.
  /// Operations and captures need it (OnDevice); memory and weights do not.
  [[nodiscard]] virtual int bind() const { return 0; }
  virtual void unbind(int /*previous*/) const noexcept {}
  /// "cuda:1" where there may be several of a kind.
  [[nodiscard]] virtual std::string_view device() const { return name(); }

  // --- memory ---

  /// 64-byte aligned and zeroed; throws std::bad_alloc.
  [[nodiscard]] virtual void* allocate(std::size_t bytes) = 0;
  virtual void release(void* memory) noexcept = 0;
  /// Converts to activations: the first ones of `to`, in the order of memory.
  virtual void upload(std::span<const double> from, const View& to) const = 0;
  virtual void upload(std::span<const float> from, const View& to) const = 0;
  /// Converts from activations, the first ones.
  virtual void download(const ConstView& from, std::span<double> to) const = 0;
  /// Bytes as they are: masks, states.
  virtual void upload_bytes(std::span<const std::uint8_t> from, std::uint8_t* to) const {
    std::copy(from.begin(), from.end(), to);
  }
  virtual void download_bytes(const std::uint8_t* from, std::span<std::uint8_t> to) const {
    std::copy_n(from, to.size(), to.begin());
  }
  /// What captures whole forecasts as graphs; nullptr where operations are simply carried out.
  [[nodiscard]] virtual GraphCapture* capture() { return nullptr; }

  // --- staging: inputs on their way in, results on their way out ---

  /// Zeroed. Throws std::bad_alloc.
  [[nodiscard]] virtual Staging allocate_staging(std::size_t bytes);
  virtual void release_staging(const Staging& staging) noexcept;
  /// Whether operations read batches from device memory (Batch::live).
  [[nodiscard]] virtual bool reads_device_batches() const { return false; }
  /// Copies bytes [offset, offset + bytes) of the host side to the device's. An operation: it is
  /// carried out in order, and captured.
  virtual void copy_in(const Staging& /*staging*/, std::size_t /*offset*/, std::size_t /*bytes*/) {}
  /// Copies the first `bytes` of the device's side to the host's. An operation.
  virtual void copy_out(const Staging& /*staging*/, std::size_t /*bytes*/) {}
  /// Where operations write results that copy_out() brings to the host and nobody reads before: the
  /// device's side, or for a few bytes the host's itself.
  [[nodiscard]] virtual std::byte* results(const Staging& staging, std::size_t /*bytes*/) const {
    return staging.host;
  }
  /// Waits until all operations have ended. Throws Error device_failed (70).
  virtual void synchronise() const {}
  /// Memory of the device that is in use now, by all programs; 0 on the host. Throws as operations.
  [[nodiscard]] virtual std::uint64_t device_bytes() const { return 0; }
  /// How often the host has waited for a device.
  [[nodiscard]] virtual std::uint64_t host_reads() const { return 0; }

  // --- weights, at load ---

  /// Takes a row-major [out][in] matrix and its bias (may be empty). For Epilogue::gated the first
  /// half of the rows is the gate. The backend may keep the memory instead of a copy.
  [[nodiscard]] virtual Matrix upload_matrix(std::unique_ptr<float[]> take, std::int32_t out,
                                             std::int32_t in, std::span<const float> bias,
                                             Epilogue use) = 0;

  /// The same, but never in fewer bits than float32, whatever type of weights the backend was made
  /// for: where the error would not be averaged out, as in the patch embedding and the head.
  [[nodiscard]] virtual Matrix upload_exact_matrix(std::unique_ptr<float[]> take, std::int32_t out,
                                                   std::int32_t in, std::span<const float> bias,
                                                   Epilogue use) {
    return upload_matrix(std::move(take), out, in, bias, use);
  }

  /// The same of a folded matrix: rounded once, to what the backend keeps. What it points to may go
  /// when this returns.
  [[nodiscard]] virtual Matrix upload_folded_matrix(const FoldedMatrix& matrix, Epilogue use,
                                                    bool exact);

  /// The operations of Toto 2.0; nullptr: this backend cannot carry one out.
  [[nodiscard]] virtual const Ops2* ops2() const { return nullptr; }

  /// What draws coherent paths; nullptr: this backend cannot.
  [[nodiscard]] virtual PathOps* paths() { return nullptr; }

  /// Ways to carry out a product: 0 .. candidates-1, of which 0 is used until another is chosen.
  /// They differ in speed only: none changes a bit. More than one only where the backend's memory
  /// is the host's: autotune() reads results there.
  [[nodiscard]] virtual int product_candidates() const { return 1; }
  virtual void choose_product(const Matrix& /*w*/, int /*candidate*/) {}
  /// The instruction set or architecture of the kernels.
  [[nodiscard]] virtual std::string_view isa() const { return "generic"; }

  // --- scaler (spec A4) ---

  /// x [rows][P] raw values, mask [rows][P] (1 = observed); label rows are ignored and become 0.
  /// Scales the tokens of every lane in order, carrying `state` [lanes]: at position 0 it starts
  /// afresh (and takes the global statistics of the first `context` tokens), later it goes on.
  virtual void scale(const Batch& batch, const ScalerSpec& spec, const ConstView& x,
                     const std::uint8_t* mask, ScalerState* state,
                     const ScalerOutputs& to) const = 0;
  /// copy_in() of the first `bytes`, then scale() of float32 values x [rows][P] and a mask that lie
  /// there. `scratch` [rows][P] is for backends whose activations are not float32.
  virtual void copy_in_and_scale(const Staging& staging, std::size_t bytes, const Batch& batch,
                                 const ScalerSpec& spec, const float* x, const std::uint8_t* mask,
                                 const View& scratch, ScalerState* state, const ScalerOutputs& to) {
    copy_in(staging, 0, bytes);
    if (element_type() == ElementType::f32) {
      scale(batch, spec, view_of(x, batch.all_rows(), spec.patch), mask, state, to);
      return;
    }
    const auto rows = static_cast<std::size_t>(batch.rows);
    upload(std::span(x, rows * static_cast<std::size_t>(spec.patch)), scratch);
    scale(batch, spec, scratch, mask, state, to);
  }
  /// Copies the states of the variates of each block of `source` (one trajectory each) to all
  /// trajectories of the block of `batch` with the same index. from [source lanes], to [lanes].
  virtual void repeat_state(const Batch& source, const Batch& batch, const ScalerState* from,
                            ScalerState* to) const = 0;

  // --- network (spec A5-A8) ---

  /// y[rows][out] = W x[rows][in] + b, with its epilogue, for all rows of x. x is of
  /// operand_type(w), and so are gated results y [rows][out/2]; all other results are activations.
  virtual void linear(const Matrix& w, const ConstView& x, const View& y,
                      Epilogue epilogue) const = 0;
  /// y = x / sqrt(mean(x^2) + 1e-8) * gain; x, y [rows][dim], gain [1][dim]. y is of the type that
  /// the product after it takes.
  virtual void rms_norm(const ConstView& x, const ConstView& gain, const View& y) const = 0;
  /// linear() of what rms_norm() leaves; `scratch` [rows][in + 1].
  virtual void norm_linear(const ConstView& x, const ConstView& gain, const View& scratch,
                           const Matrix& w, const View& y, Epilogue epilogue) const {
    const View normed = scratch.as(operand_type(w), x.rows, w.in);
    rms_norm(x, gain, normed);
    linear(w, normed, y, epilogue);
  }
  /// Prepares a network to be carried out by stack(); nullptr: this backend takes its operations
  /// one by one. The backend keeps what it returns.
  [[nodiscard]] virtual const PreparedStack* prepare_stack(const StackWeights& /*weights*/) {
    return nullptr;
  }
  /// Embedding, labels and all layers over a context, of which nothing is cached, and the product
  /// that follows, in one operation with the bits of the operations below one by one: scaled
  /// [rows][P] to y [lanes][outs], the first outputs of StackWeights::after; keys and values
  /// are appended; hidden [rows][D] and tokens [lanes][D] are scratch. Where `last` is `all`
  /// itself, every token goes on to the end: tokens and y have the rows of `all`. `stack`: from
  /// prepare_stack(). `early`: what exact_statistics() may be given. false: nothing was done, take
  /// them one by one.
  [[nodiscard]] virtual bool stack(const PreparedStack& /*stack*/, const Batch& /*all*/,
                                   const Batch& /*last*/, const Rotary& /*rotary*/,
                                   std::span<const KvLayer> /*kv*/, const ConstView& /*scaled*/,
                                   const View& /*hidden*/, const View& /*tokens*/,
                                   const View& /*y*/, EarlyResults& /*early*/) const {
    return false;
  }
  /// Writes the labels [2][dim] (target, exogenous; unit length) over the label rows of `hidden`.
  virtual void set_labels(const Batch& batch, const ConstView& labels,
                          const View& hidden) const = 0;
  /// Rotates queries in place, and appends rotated keys, and values, to the private suffix.
  /// qkv [rows][3][H][d].
  virtual void rotary_append(const Batch& batch, const Rotary& rotary, const View& qkv,
                             const KvLayer& kv, std::int32_t heads) const = 0;
  /// Causal attention over the shared prefix and the private suffix (this call's tokens included).
  /// out [rows][H*d], or with `last_only` [lanes][H*d]: the last token of each lane. It is of the
  /// type that the product after it takes.
  virtual void time_attention(const Batch& batch, const ConstView& qkv, const KvLayer& kv,
                              const View& out, std::int32_t heads, bool last_only) const = 0;
  /// rotary_append(), then time_attention(): at once where the backend can. `kept`: calls that
  /// follow read the keys and values of this one; otherwise these need not be appended. What is in
  /// qkv afterwards is the backend's affair.
  virtual void append_and_attend(const Batch& batch, const Rotary& rotary, const View& qkv,
                                 const KvLayer& kv, const View& out, std::int32_t heads,
                                 bool last_only, bool /*kept*/) const {
    rotary_append(batch, rotary, qkv, kv, heads);
    time_attention(batch, qkv, kv, out, heads, last_only);
  }
  /// Attention over the variates of each (trajectory, token) with equal ids. out [rows][H*d], as
  /// above.
  virtual void variate_attention(const Batch& batch, const ConstView& qkv, const View& out,
                                 std::int32_t heads) const = 0;
  /// Copies the last token of every lane, or the first columns of it: x [rows][dim] -> y [lanes],
  /// at most as wide.
  virtual void gather_last(const Batch& batch, const ConstView& x, const View& y) const = 0;

  // --- head and the next patch (spec A10, A11) ---

  /// raw [rows][4*K] (df, loc, scale, mixture) becomes df, loc, scale, probability in place.
  virtual void distribution(const View& raw, bool mixture) const = 0;
  /// y = mixture mean in data units, extreme values replaced by 0. params [lanes][steps*4*K];
  /// loc, scale, y [lanes][P]; steps beyond shape.steps become 0. Where `shared` is given, params,
  /// loc and scale are those of its blocks (one trajectory each), for all trajectories of `batch`.
  virtual void predict_mean(const Batch& batch, const Batch* shared, const PatchShape& shape,
                            const ConstView& params, const ConstView& loc, const ConstView& scale,
                            const View& y) const = 0;
  /// The same with draws, addressed by
  /// (block.seed, block.key, variate, first_sample + trajectory, first_step + step).
  virtual void predict_draw(const Batch& batch, const Batch* shared, const PatchShape& shape,
                            const ConstView& params, const ConstView& loc, const ConstView& scale,
                            const View& y) const = 0;
  /// Overwrites the last E variates of y [lanes][P] with float32 covariates [E][P] at
  /// block.covariates.
  virtual void inject(const Batch& batch, const PatchShape& shape, const float* covariates,
                      const View& y) const = 0;

  // --- statistics ---

  [[nodiscard]] virtual StatisticsLimits statistics_limits() const { return {}; }
  /// Makes room for statistics of so many components, levels and samples: the operations below
  /// allocate nothing. Throws std::bad_alloc.
  virtual void reserve_statistics(std::int32_t /*components*/, std::int32_t /*levels*/,
                                  std::int32_t /*samples*/) {}
  /// y [lanes][P], a patch just predicted, into the trajectories of the request:
  /// kept [variates][horizon][samples], from Block::first_step and first_sample on. `source` has
  /// one trajectory for each block of `batch`: its lanes are the variates.
  virtual void keep(const Batch& batch, const Batch& source, const PatchShape& shape,
                    const ConstView& y, float* kept, const KeptShape& room) const = 0;
  /// Exact statistics of the mixtures params [lanes][shape.steps*4*K], which become parameters if
  /// `head` says that they are not yet, with the bits of distribution():
  /// out [lanes][shape.steps][2 + levels.max]: mean, standard deviation, quantiles.
  virtual void exact_statistics(const Batch& batch, const PatchShape& shape,
                                const HeadResults& head, const View& params, const ConstView& loc,
                                const ConstView& scale, const Levels& levels, float* out) const = 0;
  /// The same from kept trajectories, for steps `first` .. horizon - 1 of each lane of `source`:
  /// out [lanes][room.horizon - first][2 + levels.max].
  virtual void sample_statistics(const Batch& source, const float* kept, const KeptShape& room,
                                 std::int32_t first, const Levels& levels, float* out) const = 0;
  /// Parameters of trajectory 0 of each series, with the loc and scale that they are in units of:
  /// out [variates][horizon][4 K + 2], from Block::first_step on. params, loc, scale as for
  /// predict_mean() without `shared`; `source` as for keep().
  virtual void keep_parameters(const Batch& batch, const Batch& source, const PatchShape& shape,
                               const ConstView& params, const ConstView& loc,
                               const ConstView& scale, float* out, std::int32_t horizon) const = 0;
};

/// The plain loops: the oracle of every other backend.
std::unique_ptr<Backend> make_reference_backend_f32();
std::unique_ptr<Backend> make_reference_backend_f64();

/// While it lives, the backend's device is the current one of this thread.
class OnDevice {
 public:
  explicit OnDevice(const Backend& backend) : backend_(backend), previous_(backend.bind()) {}
  ~OnDevice() { backend_.unbind(previous_); }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;

 private:
  const Backend& backend_;
  int previous_;
};

}  // namespace toto
