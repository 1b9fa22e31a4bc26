// SPDX-License-Identifier: Apache-2.0
// Where the time goes: named spans of a thread, as a Chrome trace and as ranges of a profiler.
// While no Trace lives and no profiler is attached, a span costs two loads of atomic pointers.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace toto {

/// Collects the spans of all threads for as long as it lives; there may be one at a time. It must
/// outlive the spans that begin while it lives.
class Trace {
 public:
  using Clock = std::chrono::steady_clock;

  Trace();
  ~Trace();
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

  static Trace* active() { return active_.load(std::memory_order_acquire); }

  /// `name` must live as long as the trace. What no memory can be had for is dropped and counted.
  void add(const char* name, Clock::time_point begin, Clock::time_point end) noexcept;

  /// The spans in the order in which they began, in the format that chrome://tracing and Perfetto
  /// read: times in microseconds since the trace was made, threads numbered from 1.
  [[nodiscard]] std::string chrome_json() const;

 private:
  struct Event {
    const char* name;
    Clock::time_point begin, end;
    std::thread::id thread;
  };
  static inline std::atomic<Trace*> active_ = nullptr;

  const Clock::time_point start_ = Clock::now();
  mutable std::mutex mutex_;
  std::vector<Event> events_;
  std::uint64_t dropped_ = 0;
};

/// What else learns of spans as they begin and end: the ranges of a profiler. Ranges of a thread
/// end in the opposite order of their beginnings.
struct SpanRanges {
  void (*push)(const char* name) noexcept;
  void (*pop)() noexcept;

  static const SpanRanges* active() { return active_.load(std::memory_order_acquire); }
  /// From now on spans are handed to `ranges`, which must outlive them; nullptr: to nobody.
  static void set(const SpanRanges* ranges) { active_.store(ranges, std::memory_order_release); }

 private:
  static inline std::atomic<const SpanRanges*> active_ = nullptr;
};

/// A span from here to the end of the scope. An empty name: none.
class Span {
 public:
  explicit Span(const char* name)
      : trace_(name == nullptr ? nullptr : Trace::active()),
        ranges_(name == nullptr ? nullptr : SpanRanges::active()) {
    if (ranges_ != nullptr) ranges_->push(name);
    if (trace_ == nullptr) return;
    name_ = name;
    begin_ = Trace::Clock::now();
  }
  ~Span() {
    if (trace_ != nullptr) trace_->add(name_, begin_, Trace::Clock::now());
    if (ranges_ != nullptr) ranges_->pop();
  }
  Span(const Span&) = delete;
  Span& operator=(const Span&) = delete;

 private:
  Trace* trace_;
  const SpanRanges* ranges_;
  const char* name_ = nullptr;
  Trace::Clock::time_point begin_;
};

}  // namespace toto
