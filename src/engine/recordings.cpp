// SPDX-License-Identifier: Apache-2.0
#include "engine/recordings.h"

#include <algorithm>

namespace toto {

Recordings::~Recordings() { forget(); }

bool Recordings::forget() {
  for (const auto& recorded : all_) release(*recorded);
  const bool any = !all_.empty();
  all_.clear();
  return any;
}

void Recordings::release(Recorded& recorded) const {
  recorded.recording.reset();
  Recorder& recorder = *backend_.recorder();
  recorder.release_mirror(recorded.in);
  recorder.release_mirror(recorded.out);
  if (recorded.kept != nullptr) backend_.release(recorded.kept);
  recorded.in = recorded.out = {};
  recorded.kept = nullptr;
}

Recorded* Recordings::find(const RecordingKey& key) {
  std::erase_if(all_, [&](const auto& recorded) {
    if (recorded->key.epoch == key.epoch) return false;
    release(*recorded);
    return true;
  });
  for (const auto& recorded : all_) {
    if (recorded->key != key) continue;
    recorded->used = ++clock_;
    return recorded.get();
  }
  return nullptr;
}

Recorded& Recordings::add(std::unique_ptr<Recorded> recorded) {
  if (full()) {
    const auto oldest = std::min_element(
        all_.begin(), all_.end(), [](const auto& a, const auto& b) { return a->used < b->used; });
    release(**oldest);
    all_.erase(oldest);
  }
  recorded->used = ++clock_;
  all_.push_back(std::move(recorded));
  return *all_.back();
}

}  // namespace toto
