// SPDX-License-Identifier: Apache-2.0
#include "engine/graph_cache.h"

#include <algorithm>
#include <utility>

namespace toto {

GraphCache::~GraphCache() {
  for (const auto& captured : all_) release(*captured);
}

bool GraphCache::forget() {
  return std::erase_if(all_, [&](const auto& captured) {
           if (captured->under_way) return false;
           release(*captured);
           return true;
         }) > 0;
}

void GraphCache::release(CapturedForecast& captured) const {
  captured.graph.reset();
  toto::release(backend_, captured.buffers);
}

CapturedForecast* GraphCache::find(const ProgramKey& key) {
  std::erase_if(all_, [&](const auto& captured) {
    if (captured->key.epoch == key.epoch || captured->under_way) return false;
    release(*captured);
    return true;
  });
  for (const auto& captured : all_) {
    if (captured->under_way || captured->key != key) continue;
    captured->used = ++clock_;
    return captured.get();
  }
  return nullptr;
}

std::size_t GraphCache::under_way(const ProgramKey& key) const {
  return static_cast<std::size_t>(std::ranges::count_if(
      all_, [&](const auto& captured) { return captured->under_way && captured->key == key; }));
}

bool GraphCache::has_room() const {
  return !full() ||
         std::ranges::any_of(all_, [](const auto& captured) { return !captured->under_way; });
}

CapturedForecast& GraphCache::add(std::unique_ptr<CapturedForecast> captured) {
  if (full()) {
    const auto oldest = std::ranges::min_element(
        all_, {}, [](const auto& one) { return std::pair(one->under_way, one->used); });
    release(**oldest);
    all_.erase(oldest);
  }
  captured->used = ++clock_;
  all_.push_back(std::move(captured));
  return *all_.back();
}

bool grow(Backend& backend, Buffers& buffers, std::size_t in, std::size_t out, std::size_t kept) {
  bool grown = false;
  const auto grow_staging = [&](Staging& staging, std::size_t& have, std::size_t need) {
    if (need <= have) return;
    backend.release_staging(staging);
    staging = {};
    have = 0;
    staging = backend.allocate_staging(need);
    have = need;
    grown = true;
  };
  grow_staging(buffers.in, buffers.in_bytes, in);
  grow_staging(buffers.out, buffers.out_bytes, out);
  if (kept > buffers.kept_bytes) {
    if (buffers.kept != nullptr) backend.release(buffers.kept);
    buffers.kept = nullptr;
    buffers.kept_bytes = 0;
    buffers.kept = backend.allocate(kept);
    buffers.kept_bytes = kept;
    grown = true;
  }
  return grown;
}

void release(Backend& backend, Buffers& buffers) noexcept {
  if (buffers.in.host != nullptr) backend.release_staging(buffers.in);
  if (buffers.out.host != nullptr) backend.release_staging(buffers.out);
  if (buffers.kept != nullptr) backend.release(buffers.kept);
  buffers = {};
}

}  // namespace toto
