// SPDX-License-Identifier: Apache-2.0
#include "server/models.h"

#include <algorithm>

#include "core/json.h"

namespace toto::server {

void Models::put(ModelPointer model) {
  const std::scoped_lock lock(mutex_);
  replaced_.reserve(replaced_.size() + 1);  // throws before anything changes
  for (ModelPointer& one : models_) {
    if (one->name != model->name) continue;
    replaced_.push_back(std::exchange(one, std::move(model)));
    return;
  }
  models_.push_back(std::move(model));
}

ModelPointer Models::find(std::string_view name) const {
  const std::scoped_lock lock(mutex_);
  std::string known;
  for (const ModelPointer& one : models_) {
    if (name.empty() || one->name == name) return one;
    known += (known.empty() ? "" : ", ") + one->name;
  }
  throw Error(ExitStatus::usage, "unknown_model", "no model is called " + quote(name), "model",
              known.empty() ? "no model is loaded" : "choose one of: " + known);
}

std::vector<ModelPointer> Models::all() const {
  const std::scoped_lock lock(mutex_);
  return models_;
}

bool Models::sweep() {
  std::vector<ModelPointer> free;  // destroyed outside the lock
  const std::scoped_lock lock(mutex_);
  std::erase_if(replaced_, [&free](ModelPointer& one) {
    if (one.use_count() > 1) return false;
    free.push_back(std::move(one));
    return true;
  });
  return replaced_.empty();
}

void Models::close() {
  std::vector<ModelPointer> all;
  {
    const std::scoped_lock lock(mutex_);
    all = models_;
    all.insert(all.end(), replaced_.begin(), replaced_.end());
  }
  for (const ModelPointer& one : all) one->service.close();
}

}  // namespace toto::server
