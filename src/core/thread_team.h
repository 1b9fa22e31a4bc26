// SPDX-License-Identifier: Apache-2.0
// A resident team of threads for short fork-joins: a forecast has hundreds, a few microseconds
// long.
//
// Between two of them a worker spins for a moment and then parks in the kernel, so that
// back-to-back work costs no system call and an idle program costs no processor time. A run
// allocates nothing. Work is divided by index, and an index goes to the same thread each time while
// every thread has a core of its own.
//
// Where other programs keep the cores busy, a worker may wait milliseconds for a core. So the
// caller does the shares itself that their workers have not begun when its own is done.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>
#include <type_traits>
#include <vector>

namespace toto {

/// Indices [begin, end).
struct Range {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  [[nodiscard]] std::int64_t size() const { return end - begin; }
};

/// Share `index` of `count` items divided among `parts`: contiguous, sizes differing by at most 1.
constexpr Range share(std::int64_t count, std::int64_t parts, std::int64_t index) {
  const std::int64_t each = count / parts;
  const std::int64_t rest = count % parts;
  const std::int64_t begin = index * each + std::min(index, rest);
  return {begin, begin + each + (index < rest ? 1 : 0)};
}

class ThreadTeam {
 public:
  /// The calling thread is number 0, so `threads` - 1 are started. 0: one for each available core.
  /// Without `spin` a thread that has nothing to do sleeps at once.
  explicit ThreadTeam(int threads, bool spin = true);
  ~ThreadTeam();
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;

  /// 1 for a thread that works alone.
  [[nodiscard]] int size() const { return alone_ == this ? 1 : threads(); }

  /// While one lives on a thread that does a share of run(), that thread works alone: run() calls
  /// work(0) there and then.
  class Alone {
   public:
    Alone(const ThreadTeam& team, int thread) {
      alone_ = &team;
      thread_ = thread;
    }
    ~Alone() { alone_ = nullptr; }
    Alone(const Alone&) = delete;
    Alone& operator=(const Alone&) = delete;
  };
  /// Which thread of the team does share `thread` of a run(): another one only if it works alone.
  [[nodiscard]] int seat(int thread) const { return alone_ == this ? thread_ : thread; }

  /// Calls work(0) .. work(threads - 1), and returns when all are done: work(0) on the calling
  /// thread, each of the others on its own thread of the team or, where that is late, on the
  /// calling thread. 1 <= threads <= size(). Callers on different threads take turns. `work` must
  /// be noexcept and must not call run() of the same team, unless it is Alone.
  template <typename Work>
  void run(int threads, const Work& work) {
    static_assert(std::is_nothrow_invocable_v<const Work&, int>);
    if (alone_ == this) {
      work(0);
      return;
    }
    run_call({[](const void* w, int thread) noexcept { (*static_cast<const Work*>(w))(thread); },
              &work, threads});
  }

  struct Counters {
    std::uint64_t runs = 0;       // fork-joins
    std::uint64_t parks = 0;      // times a thread slept because there was nothing to do
    std::uint64_t takeovers = 0;  // shares that the caller did because their worker was late
  };
  [[nodiscard]] Counters counters() const;

 private:
  static inline thread_local const ThreadTeam* alone_ = nullptr;  // where this thread works alone
  static inline thread_local int thread_ = 0;                     // and which it is

  [[nodiscard]] int threads() const { return static_cast<int>(workers_.size()) + 1; }
  struct Call {
    void (*function)(const void*, int) noexcept;
    const void* work;
    int threads;
  };
  void stop();
  void run_call(const Call& call);
  void fork_join(const Call& call);
  void serve(int thread);
  void take_over(const Call& call, std::uint32_t generation);
  template <typename Done>
  void await(std::atomic<std::uint32_t>& word, std::atomic<std::uint32_t>& sleepers,
             const Done& done);

  /// Of one worker: the last fork whose share was begun, by the worker or by the caller in its
  /// place. Every share of every fork is claimed once, so it goes up by 1 each time.
  struct alignas(64) Claim {
    std::atomic<std::uint32_t> generation{0};
    [[nodiscard]] bool take(std::uint32_t next) {
      std::uint32_t before = next - 1;
      return generation.load(std::memory_order_relaxed) == before &&
             generation.compare_exchange_strong(before, next);
    }
  };

  // Each word that threads wait on has its own cache line.
  alignas(64) std::atomic<std::uint32_t> generation_{0};  // grows by 1 for each fork
  std::atomic<std::uint32_t> sleeping_workers_{0};
  Call call_{};
  bool stop_ = false;
  alignas(64) std::atomic<std::uint32_t> pending_{0};  // workers that have not finished
  std::atomic<std::uint32_t> sleeping_caller_{0};
  alignas(64) std::atomic<std::uint32_t> busy_{0};  // 1 while a caller has the team
  std::atomic<std::uint64_t> runs_{0};
  std::atomic<std::uint64_t> parks_{0};
  std::atomic<std::uint64_t> takeovers_{0};
  std::chrono::nanoseconds spin_;
  std::vector<Claim> claims_;  // of each worker; the first is that of thread 1
  std::vector<std::jthread> workers_;
};

}  // namespace toto
