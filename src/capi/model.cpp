// SPDX-License-Identifier: Apache-2.0
// toto_model: settings by their words, loading, what a model is.
#include <memory>
#include <optional>
#include <string>

#include "capi/guard.h"
#include "capi/handles.h"
#include "capi/settings.h"
#include "capi/structs.h"

namespace toto::capi {
namespace {

std::optional<std::string> word_of(const char* given) {
  return given == nullptr ? std::nullopt : std::optional<std::string>(given);
}

toto::Model load(const toto_model_options& given) {
  SettingsFlags flags;
  if (given.model != nullptr && *given.model != '\0') flags.model = given.model;
  flags.device = word_of(given.device);
  flags.backend = word_of(given.backend);
  flags.mode = word_of(given.mode);
  flags.precision = word_of(given.precision);
  if (given.threads != 0) flags.threads = std::to_string(given.threads);
  const Settings settings = settings_of(flags);
  ModelQuery query;
  query.hub_cache = text(given.hub_cache);
  query.strict = given.strict != 0;
  settings.apply(query);
  LoadOptions options;
  options.log = lines_to(given.warning, nullptr, given.user);
  apply(settings, options);
  return Model::load(query, options);
}

const ModelInfo* info_of(const toto_model* model) {
  return model == nullptr ? nullptr : &model->model.info();
}

}  // namespace
}  // namespace toto::capi

using namespace toto::capi;  // NOLINT(google-build-using-namespace): what this file implements

toto_status toto_model_load(const toto_model_options* options, toto_model** model,
                            toto_error** error) {
  return guard(error, [&] {
    required(model, "model") = nullptr;
    toto_model_options given = TOTO_MODEL_OPTIONS_INIT;
    if (options != nullptr) given = read_struct<toto_model_options>(options, "options");
    *model = new toto_model{load(given)};
  });
}

void toto_model_free(toto_model* model) { delete model; }

const char* toto_model_name(const toto_model* model) {
  const auto* info = info_of(model);
  return info == nullptr ? nullptr : info->name.c_str();
}
const char* toto_model_folder(const toto_model* model) {
  const auto* info = info_of(model);
  return info == nullptr ? nullptr : info->folder.c_str();
}
const char* toto_model_architecture(const toto_model* model) {
  const auto* info = info_of(model);
  return info == nullptr ? nullptr : info->architecture.c_str();
}
size_t toto_model_patch_size(const toto_model* model) {
  const auto* info = info_of(model);
  return info == nullptr ? 0 : static_cast<size_t>(info->patch_size);
}
uint64_t toto_model_parameters(const toto_model* model) {
  const auto* info = info_of(model);
  return info == nullptr ? 0 : info->parameters;
}
int32_t toto_model_is_synthetic(const toto_model* model) {
  const auto* info = info_of(model);
  return info != nullptr && info->synthetic ? 1 : 0;
}
