// SPDX-License-Identifier: Apache-2.0
#include "core/thread_team.h"

#include <string>
#include <system_error>

#include "core/cpu_info.h"
#include "toto/error.hpp"

namespace toto {
namespace {

// Longer than the gap between two operations of a forecast, much shorter than one between
// forecasts.
constexpr std::chrono::microseconds kSpin{100};
constexpr int kPausesPerLook = 64;  // the clock is read this rarely

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace

ThreadTeam::ThreadTeam(int threads, bool spin) {
  const int cores = available_cores();
  const int size = threads > 0 ? threads : cores;
  // With more threads than cores, a spinning thread keeps the core from the one it waits for.
  spin_ = size > cores || !spin ? std::chrono::nanoseconds{0} : std::chrono::nanoseconds{kSpin};
  claims_ = std::vector<Claim>(static_cast<std::size_t>(size - 1));
  workers_.reserve(static_cast<std::size_t>(size - 1));
  try {
    for (int thread = 1; thread < size; ++thread) {
      workers_.emplace_back([this, thread] { serve(thread); });
    }
  } catch (...) {  // those that started must not be waited for
    const std::size_t started = workers_.size() + 1;
    stop();
    try {
      throw;
    } catch (const std::system_error&) {
      throw Error(
          ExitStatus::internal, "no_threads",
          "the system gave " + std::to_string(started) + " of " + std::to_string(size) + " threads",
          {}, "use fewer --threads, or raise the limit (ulimit -u)");
    }
  }
}

ThreadTeam::~ThreadTeam() { stop(); }

void ThreadTeam::stop() {
  stop_ = true;
  generation_.fetch_add(1);
  generation_.notify_all();
  workers_.clear();  // joins
}

ThreadTeam::Counters ThreadTeam::counters() const {
  return {runs_.load(std::memory_order_relaxed), parks_.load(std::memory_order_relaxed),
          takeovers_.load(std::memory_order_relaxed)};
}

/// Spins, then sleeps on `word`, until done(value of word). Whoever changes `word` does so with a
/// sequentially consistent operation and looks at `sleepers` afterwards; here it is the other way
/// round, so that at least one side sees the other.
template <typename Done>
void ThreadTeam::await(std::atomic<std::uint32_t>& word, std::atomic<std::uint32_t>& sleepers,
                       const Done& done) {
  if (spin_.count() > 0) {
    const auto give_up = std::chrono::steady_clock::now() + spin_;
    do {
      for (int i = 0; i < kPausesPerLook; ++i) {
        if (done(word.load(std::memory_order_acquire))) return;
        pause();
      }
    } while (std::chrono::steady_clock::now() < give_up);
  }
  std::uint32_t value = word.load(std::memory_order_acquire);
  if (done(value)) return;
  parks_.fetch_add(1, std::memory_order_relaxed);
  sleepers.fetch_add(1);
  for (value = word.load(); !done(value); value = word.load()) word.wait(value);
  sleepers.fetch_sub(1);
}

void ThreadTeam::run_call(const Call& call) {
  while (busy_.exchange(1) != 0) busy_.wait(1);
  runs_.fetch_add(1, std::memory_order_relaxed);
  if (call.threads == 1) {
    call.function(call.work, 0);
  } else {
    fork_join(call);
  }
  busy_.exchange(0);
  busy_.notify_one();  // no system call unless someone waits
}

void ThreadTeam::fork_join(const Call& call) {
  call_ = call;
  pending_.store(static_cast<std::uint32_t>(workers_.size()), std::memory_order_relaxed);
  const std::uint32_t generation = generation_.fetch_add(1) + 1;
  if (sleeping_workers_.load() > 0) generation_.notify_all();
  call.function(call.work, 0);
  for (int i = 0; i < kPausesPerLook; ++i) {
    if (pending_.load(std::memory_order_acquire) == 0) return;
    pause();
  }
  take_over(call, generation);
  await(pending_, sleeping_caller_, [](std::uint32_t left) { return left == 0; });
}

/// Does the shares that no worker has begun by now. A worker that is awake begins at once, and one
/// that was asleep takes longer to wake than the caller took for its own share; so doing another
/// one of that length is sooner than waiting.
void ThreadTeam::take_over(const Call& call, std::uint32_t generation) {
  for (int thread = 1; thread < threads(); ++thread) {
    if (!claims_[static_cast<std::size_t>(thread - 1)].take(generation)) continue;
    if (thread < call.threads) {
      call.function(call.work, thread);
      takeovers_.fetch_add(1, std::memory_order_relaxed);
    }
    pending_.fetch_sub(1);
  }
}

void ThreadTeam::serve(int thread) {
  Claim& claim = claims_[static_cast<std::size_t>(thread - 1)];
  std::uint32_t seen = 0;
  for (;;) {
    std::uint32_t now = seen;
    await(generation_, sleeping_workers_, [&](std::uint32_t value) {
      now = value;
      return value != seen;
    });
    seen = now;
    // Where the caller has taken the share, a later fork may be under way: touch nothing of it.
    if (!claim.take(seen)) continue;
    if (stop_) return;
    if (thread < call_.threads) call_.function(call_.work, thread);
    if (pending_.fetch_sub(1) == 1 && sleeping_caller_.load() > 0) pending_.notify_all();
  }
}

}  // namespace toto
