// SPDX-License-Identifier: Apache-2.0
// What a backend offers that can capture a whole forecast once and replay it: on a GPU, one graph
// launch for each forecast.
//
// Operations that are called between begin() and end() are captured, not carried out. What changes
// from forecast to forecast (counts, blocks, ids, values, seeds, levels) they read from a staging
// buffer that the graph copies to the device first. So a graph is never patched.
#pragma once

#include <cstddef>
#include <limits>
#include <memory>
#include <span>

#include "backend/backend.h"

namespace toto {

/// Results that kernels write straight to the host side of a staging buffer: of each of `cells`
/// records, `stride` floats apart, the first `used` floats.
struct HostResult {
  float* first = nullptr;
  std::size_t cells = 0, stride = 0, used = 0;
};

class GraphCapture {
 public:
  virtual ~GraphCapture() = default;

  /// A captured forecast. Destroyed before the backend.
  class Graph {
   public:
    Graph() = default;
    virtual ~Graph() = default;
    Graph(const Graph&) = delete;
    Graph& operator=(const Graph&) = delete;
    [[nodiscard]] virtual std::size_t launches() const = 0;  // kernels in it
  };
  virtual void begin() = 0;
  [[nodiscard]] virtual std::unique_ptr<Graph> end() = 0;
  /// Gives up a capture that has begun.
  virtual void abandon() noexcept = 0;
  /// Launches a graph, which must not be under way. Graphs are carried out one after the other, in
  /// the order of their launches and of other operations. Throws Error device_failed (70).
  virtual void launch(Graph& graph, bool timed, std::span<const HostResult> results) = 0;
  /// Waits for the end of a graph that was launched with the same arguments; then it is not under
  /// way any more. If it is not `timed` and there are `results`, it waits for those instead, which
  /// are there sooner: then they are all that the graph writes to the host. Other threads may use
  /// the backend meanwhile. Throws Error device_failed (70). Returns, if `timed`, the seconds
  /// between the first and the last operation, by the device's clock.
  virtual double finish(Graph& graph, bool timed, std::span<const HostResult> results) = 0;
  /// Between the two, where results are worth sharing out: returns once all operations but the copy
  /// of results have ended, or at once where that is not known, and has woken the threads of the
  /// backend that sleep. Other threads may use it meanwhile. Throws as finish().
  virtual void await_copy(Graph& /*graph*/) {}
  /// After await_copy(), where results are copied in parts: waits until more than the first `have`
  /// bytes of them are there, and returns how many are. kAll: what is left is not known in parts,
  /// and finish() waits for it. Throws as finish().
  static constexpr std::size_t kAll = std::numeric_limits<std::size_t>::max();
  virtual std::size_t await_results(Graph& /*graph*/, std::size_t /*have*/) { return kAll; }
  double replay(Graph& graph, bool timed, std::span<const HostResult> results) {
    launch(graph, timed, results);
    return finish(graph, timed, results);
  }
};

}  // namespace toto
