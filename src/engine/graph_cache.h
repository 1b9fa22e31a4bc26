// SPDX-License-Identifier: Apache-2.0
// Staging buffers of a forecast, and forecasts that a backend has captured
// (backend/graph_capture.h): one for each plan and each kind of request that was made of it.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "backend/graph_capture.h"
#include "models/network.h"

namespace toto {

/// Inputs, results, and trajectories that nobody asked for.
struct Buffers {
  Staging in, out;
  void* kept = nullptr;
  std::size_t in_bytes = 0, out_bytes = 0, kept_bytes = 0;
};

struct CapturedForecast {
  ProgramKey key;
  Buffers buffers;
  bool on_host = false;  // operations write results straight to the host's side
  std::unique_ptr<GraphCapture::Graph> graph;
  std::uint64_t used = 0;
  bool under_way = false;  // launched, and its results have not been read yet
};

/// Owns captured forecasts and their memory, at most `max` of them, at least 1. The least recently
/// used goes; none does while it is under way. There may be several of a key, each with buffers of
/// its own: one is under way while inputs of the next forecast are put into another one's.
class GraphCache {
 public:
  GraphCache(Backend& backend, std::size_t max) : backend_(backend), max_(max) {}
  ~GraphCache();
  GraphCache(const GraphCache&) = delete;
  GraphCache& operator=(const GraphCache&) = delete;

  /// One that is not under way; nullptr where there is none. Those that point into memory of an
  /// earlier epoch are forgotten.
  [[nodiscard]] CapturedForecast* find(const ProgramKey& key);
  /// How many of a key are under way.
  [[nodiscard]] std::size_t under_way(const ProgramKey& key) const;
  /// Whether one more pushes another one out.
  [[nodiscard]] bool full() const { return all_.size() >= max_; }
  /// Whether there is room for one more, or one that can go.
  [[nodiscard]] bool has_room() const;
  /// Takes one with its memory allocated. There must be room.
  CapturedForecast& add(std::unique_ptr<CapturedForecast> captured);
  /// Frees all that are not under way; false where there was none.
  bool forget();
  /// Frees what `captured` holds.
  void release(CapturedForecast& captured) const;

 private:
  Backend& backend_;
  std::size_t max_;
  std::vector<std::unique_ptr<CapturedForecast>> all_;
  std::uint64_t clock_ = 0;
};

/// Allocates what is larger than there is already, and frees the old. Throws std::bad_alloc.
/// Returns whether anything was allocated.
bool grow(Backend& backend, Buffers& buffers, std::size_t in, std::size_t out, std::size_t kept);
void release(Backend& backend, Buffers& buffers) noexcept;

}  // namespace toto
