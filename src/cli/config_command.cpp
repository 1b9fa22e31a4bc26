// SPDX-License-Identifier: Apache-2.0
// toto config: the settings in force, and where each value came from.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/json_text.h"
#include "engine/plan_cache.h"

namespace toto::cli {
namespace {

using nlohmann::ordered_json;

struct ConfigRequest {
  SettingsFlags flags;
  bool json = false;
};

/// Those of PyTorch: a TOTO_* name that nothing reads has been a warning.
std::vector<VariableNote> foreign_variables() {
  std::vector<VariableNote> notes = explain(process_variables());
  std::erase_if(notes, [](const VariableNote& one) { return one.severity != Severity::info; });
  return notes;
}

std::string to_json(const std::vector<SettingLine>& lines) {
  ordered_json all;
  for (const SettingLine& line : lines) {
    all[std::string(line.name)] = {{"value", line.value}, {"from", describe(line.origin)}};
  }
  for (const PresetLine& preset : describe_presets()) {
    ordered_json& values = all["presets"][std::string(preset.preset)];
    for (const SettingLine& line : preset.settings) values[std::string(line.name)] = line.value;
  }
  all["variables"] = ordered_json::array();
  for (const VariableNote& one : foreign_variables()) {
    all["variables"].push_back(
        {{"name", one.name}, {"value", one.value}, {"meaning", one.meaning}});
  }
  return json_text(all);
}

std::string to_text(const std::vector<SettingLine>& lines) {
  std::size_t width = 0;
  for (const SettingLine& line : lines) width = std::max(width, line.value.size());
  std::string text = fmt::format("{:20}  {:{}}  from\n", "setting", "value", width);
  for (const SettingLine& line : lines) {
    text += fmt::format("{:20}  {:{}}  {}\n", line.name, line.value, width, describe(line.origin));
  }
  text += "\npreset                sets\n";
  for (const PresetLine& preset : describe_presets()) {
    std::string values;
    for (const SettingLine& line : preset.settings) {
      values += fmt::format("{}{} {}", values.empty() ? "" : ", ", line.name, line.value);
    }
    text += fmt::format("{:20}  {}\n", preset.preset, values);
  }
  const std::vector<VariableNote> notes = foreign_variables();
  if (!notes.empty()) text += "\nset for PyTorch\n";
  for (const VariableNote& one : notes) text += one.meaning + "\n";
  return text +
         "\nA flag wins over the environment, that over a preset, that over what is built in;\n"
         "TOTO_DISABLE_COMPILE=1 wins over every other mode.\n";
}

ExitStatus run_config(const ConfigRequest& request) {
  const Settings settings = resolve_settings(request.flags);
  // Says what is wrong with the folder, as a forecast would.
  const PlanCache cache(settings.plan_cache_dir.value, settings.plan_cache.value,
                        log_sink(settings));
  const std::vector<SettingLine> lines = describe(settings);
  print(request.json ? to_json(lines) : to_text(lines));
  return ExitStatus::ok;
}

}  // namespace

void add_config(const Command& app, Session& session) {
  const auto request = std::make_shared<ConfigRequest>();
  const Command command =
      add_command(app, session, "config", "Shows the settings in force and where each came from.",
                  "  toto config\n"
                  "  toto config --preset validation\n"
                  "  TOTO_DISABLE_COMPILE=1 toto config --preset production --json\n");
  command.add_option("--model,-m", request->flags.model, "As for toto forecast").type_name("MODEL");
  command.add_option("--seed", request->flags.seed, "As for toto forecast").type_name("N");
  add_settings_options(command, request->flags);
  command.add_flag("--json", request->json, "Print JSON");
  command.callback(
      [request, &session] { session.run = [request] { return run_config(*request); }; });
}

}  // namespace toto::cli
