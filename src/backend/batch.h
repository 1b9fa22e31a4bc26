// SPDX-License-Identifier: Apache-2.0
// The batch of one call of the network, as the operations of the seam see it.
#pragma once

#include <cstdint>

namespace toto {

/// One series of a ragged batch in one call of the network. Its rows (tokens) are laid out
/// [trajectory][variate][token], starting at `row`.
struct Block {
  std::int32_t row = 0;   // first row of the block
  std::int32_t lane = 0;  // first lane: lanes count (trajectory, variate) pairs over all blocks
  std::int32_t trajectories = 1;  // N
  std::int32_t variates = 1;      // V
  std::int32_t tokens = 0;     // S: new tokens of each (trajectory, variate), label token included
  std::int32_t position = 0;   // absolute position of the first new token
  std::int32_t centre = 0;     // xPos centre of this call (spec A8)
  std::int32_t ids = 0;        // first element of this block's group ids, [V][S]
  std::int32_t labels = 0;     // 1: the first token of every variate is its label (spec A6)
  std::int32_t exogenous = 0;  // E: the last E variates are covariates
  std::int32_t context =
      0;  // tokens of the context, label excluded: what the scaler calls the prefix
  // Keys and values, in elements of one layer's KvLayer. A prefix is shared by all trajectories:
  // [V][H][prefix][d]; a suffix is private: [N][V][H][suffix_capacity][d].
  std::int32_t prefix = 0;  // tokens of the shared prefix
  std::int32_t suffix = 0;  // private tokens cached before this call
  std::int32_t suffix_capacity = 0;
  std::int64_t prefix_at = 0;
  std::int64_t suffix_at = 0;
  // Where draws are addressed and future covariates lie.
  std::uint64_t key = 0;          // hash of the series' id
  std::int32_t first_sample = 0;  // trajectory 0 of this block is sample `first_sample`
  std::int32_t first_step =
      0;  // first step of the patch being predicted, counted from the context's end
  // Element offset of [E][P] values that replace the prediction; negative: nothing does.
  std::int64_t covariates = -1;
  // What was asked of this series.
  std::uint64_t seed = 0;
  std::int32_t horizon = 0;      // steps
  std::int32_t samples = 0;      // trajectories in all, of which this call may have some
  std::int32_t level_first = 0;  // its quantile levels in Levels::values
  std::int32_t level_count = 0;

  [[nodiscard]] std::int32_t lanes() const { return trajectories * variates; }
  [[nodiscard]] std::int32_t rows() const { return trajectories * variates * tokens; }
};

struct LiveBatch;  // below

/// How many rows an operation works on.
struct Rows {
  // NOLINTNEXTLINE(google-explicit-constructor): a number of rows is one
  Rows(std::int32_t rows) : count(rows) {}
  Rows(std::int32_t most, const std::int32_t* where, std::int32_t each)
      : count(most), live(where), times(each) {}
  std::int32_t count;                  // where `live` is set: at most so many, and
  const std::int32_t* live = nullptr;  // where the device reads how many, to be multiplied
  std::int32_t times = 1;              // by this
};

/// The batch of one call.
struct Batch {
  const Block* blocks = nullptr;      // on the host; nullptr for a device batch
  const std::int32_t* ids = nullptr;  // on the host; nullptr for a device batch
  std::int32_t count = 0;             // blocks
  std::int32_t rows = 0;              // rows of all blocks
  std::int32_t lanes = 0;             // lanes of all blocks
  // A device batch: the operations read counts, blocks and ids from here, in the device's memory.
  // The counts above are upper bounds then, exact where the operation runs at once.
  const LiveBatch* live = nullptr;
  std::int32_t variates = 0;  // of all blocks, at most; only of a device batch
  // Where no lane has keys from calls before: how many one sees, at most. 0: some have, or it may
  // be any number. Only of a device batch.
  std::int32_t keys = 0;

  /// All rows, and all lanes `each` times.
  [[nodiscard]] Rows all_rows() const;
  [[nodiscard]] Rows all_lanes(std::int32_t each = 1) const;
};

/// What a device reads of a batch, in its own memory; everything before `blocks` is the host's view
/// of it, copied.
struct LiveBatch {
  std::int32_t count = 0;  // blocks
  std::int32_t rows = 0;
  std::int32_t lanes = 0;
  std::int32_t reserved = 0;
  const Block* blocks = nullptr;
  const std::int32_t* ids = nullptr;
  // First group of queries of each block in time attention, [count + 1]: of all tokens, and of the
  // last ones.
  const std::int32_t* groups = nullptr;
  const std::int32_t* last_groups = nullptr;
};

inline Rows Batch::all_rows() const {
  return live == nullptr ? Rows(rows) : Rows(rows, &live->rows, 1);
}
inline Rows Batch::all_lanes(std::int32_t each) const {
  return live == nullptr ? Rows(lanes * each) : Rows(lanes * each, &live->lanes, each);
}

}  // namespace toto
