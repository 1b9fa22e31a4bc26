// SPDX-License-Identifier: Apache-2.0
#include "core/trace.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace toto {
namespace {

constexpr std::size_t kMaxEvents = std::size_t{1} << 20;

double microseconds(Trace::Clock::duration time) {
  return std::chrono::duration<double, std::micro>(time).count();
}

}  // namespace

Trace::Trace() { active_.store(this, std::memory_order_release); }

Trace::~Trace() { active_.store(nullptr, std::memory_order_release); }

void Trace::add(const char* name, Clock::time_point begin, Clock::time_point end) noexcept {
  const std::scoped_lock lock(mutex_);
  try {
    if (events_.size() < kMaxEvents) {
      events_.push_back({name, begin, end, std::this_thread::get_id()});
    } else {
      ++dropped_;
    }
  } catch (const std::bad_alloc&) {
    ++dropped_;
  }
}

std::string Trace::chrome_json() const {
  const std::scoped_lock lock(mutex_);
  std::vector<Event> events = events_;
  std::stable_sort(events.begin(), events.end(),
                   [](const Event& a, const Event& b) { return a.begin < b.begin; });
  std::vector<std::thread::id> threads;
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Event& event : events) {
    const auto at = std::find(threads.begin(), threads.end(), event.thread);
    const auto number = at - threads.begin() + 1;
    if (at == threads.end()) threads.push_back(event.thread);
    list.push_back({{"name", event.name},
                    {"cat", "toto"},
                    {"ph", "X"},
                    {"ts", microseconds(event.begin - start_)},
                    {"dur", microseconds(event.end - event.begin)},
                    {"pid", 1},
                    {"tid", number}});
  }
  const nlohmann::ordered_json trace = {{"displayTimeUnit", "ms"},
                                        {"otherData", {{"dropped", dropped_}}},
                                        {"traceEvents", std::move(list)}};
  return trace.dump(1) + "\n";
}

}  // namespace toto
