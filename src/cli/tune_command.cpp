// SPDX-License-Identifier: Apache-2.0
// toto tune: chooses context, samples, transform and aggregate for each symbol.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "cli/arguments.h"
#include "cli/backtest_options.h"
#include "cli/backtest_views.h"
#include "cli/counters.h"
#include "cli/help_groups.h"
#include "cli/interrupt.h"
#include "cli/progress.h"
#include "cli/result_paths.h"
#include "core/atomic_file.h"
#include "core/printable.h"
#include "tools/backtest/aggregate.h"

namespace toto::cli {
namespace {

struct TuneRequest {
  BacktestRequest backtest;
  backtest::Candidates candidates;
  std::string output = "parameters.json";
};

std::string number(double value) {
  return std::isfinite(value) ? fmt::format("{:.4f}", value) : "-";
}

std::string described(const backtest::Parameters& p) {
  return fmt::format("context {}, {}, {}, {} samples", p.context, backtest::word(p.transform),
                     p.aggregate, p.samples);
}

/// Why these parameters were written, in words.
std::string reason(const backtest::Tuned& t, std::size_t candidates) {
  if (!t.keeps_default) {
    const bool confirmed = t.best_test_mase < t.default_test_mase;
    return fmt::format("{} (p {:.3f}{})", described(t.chosen), t.p_luck,
                       confirmed ? "" : ", and no better on later windows");
  }
  if (std::isnan(t.p_luck)) return "default (too few validation windows to tell)";
  if (!(t.best_validation_mase < t.default_validation_mase)) return "default (none is better)";
  return fmt::format(
      "default (the best of {} had {:.4f}; its lead on validation may be luck, p {:.2f})",
      candidates, t.best_test_mase, t.p_luck);
}

std::string table(const backtest::Tuning& tuning, std::size_t width) {
  std::string out = fmt::format(
      "{:{}}  chosen on validation windows, measured on later ones (MASE)\n", "", width);
  out += fmt::format("{:{}}  {:>8} {:>8} {:>8}  {}\n", "", width, "written", "default", "last v.",
                     "what is written");
  for (const backtest::Tuned& t : tuning.symbols) {
    std::u32string name = printable(t.symbol);
    name.resize(width, U' ');
    out += fmt::format("{}  {:>8} {:>8} {:>8}  {}\n", to_utf8(name), number(t.test_mase),
                       number(t.default_test_mase), number(t.last_value_test_mase),
                       reason(t, tuning.candidates));
  }
  return out;
}

/// What the widths of the bands do to later windows.
std::string widths(const backtest::Tuning& tuning) {
  std::size_t changed = 0;
  double before = 0;
  double after = 0;
  for (const backtest::Tuned& t : tuning.symbols) {
    if (t.chosen.width_below == 1 && t.chosen.width_above == 1) continue;
    ++changed;
    before += t.test_coverage_as_is;
    after += t.test_coverage;
  }
  if (changed == 0) return "The 80 % bands held on validation windows but for chance: they stay.\n";
  const auto percent = [&](double sum) { return 100 * sum / static_cast<double>(changed); };
  return fmt::format(
      "Widths of the bands were written for {} of {} symbols; on later windows their 80 % bands "
      "hold {:.0f} % as the model gives them, {:.0f} % with these widths.\n",
      changed, tuning.symbols.size(), percent(before), percent(after));
}

/// How often the default is as good.
std::string conclusion(const backtest::Tuning& tuning, const std::string& output) {
  const std::size_t all = tuning.symbols.size();
  const auto kept = static_cast<std::size_t>(
      std::ranges::count_if(tuning.symbols, &backtest::Tuned::keeps_default));
  if (kept == 0) return {};
  if (kept == all) {
    return fmt::format(
        "The default is as good for {}: {} holds the defaults, and changes nothing.\n",
        all == 1 ? "the symbol" : fmt::format("all {} symbols", all), output);
  }
  return fmt::format("The default is as good for {} of {} symbols, and was written for them.\n",
                     kept, all);
}

ExitStatus run_tune(TuneRequest& request, const Session& session) {
  const Interrupt interrupt;
  BacktestRequest& with = request.backtest;
  for (const std::string& one : request.candidates.aggregates) (void)backtest::parse_aggregate(one);
  const Settings settings = resolve_settings(with.settings);
  with.query.model = settings.model.value;
  with.options.seed = settings.seed.value;
  with.options.warning = warn;
  with.options.cache_dir = with.cache_dir;
  std::vector<std::string> read = with.market.inputs;
  read.push_back(with.market.future);
  require_inputs_kept(read, {{"--output", request.output}});
  const ModelInfo info = inspect_model(with.query);
  AtomicFile output(request.output);
  const backtest::Market market = backtest::read_market(with.market);
  for (const std::string& warning : market.warnings) warn(warning);
  for (const data::SeriesError& failed : market.errors) report(failed.error);
  if (market.symbols.empty()) return market.errors.front().error.status();
  show_findings(market, session, "");
  Forecaster forecaster(Model::load(with.query, load_options(settings, session)),
                        forecaster_options(settings));
  backtest::Tuning tuning;
  {
    ProgressBar bar("tuning", session.quiet);
    with.options.progress = [&](std::size_t done, std::size_t total) {
      bar.update(done, total);
      return !interrupt.requested();
    };
    tuning = backtest::tune(market, forecaster, with.options, request.candidates);
  }
  for (const data::SeriesError& failed : tuning.errors) report(failed.error);
  const backtest::RunDescription run = describe_run(info, forecaster, with.options.decode);
  backtest::write_parameters([&](std::string_view text) { output.write(text); }, tuning,
                             with.options, run);
  output.commit();
  if (with.counters) show_counters(forecaster.counters());
  if (with.json) {
    backtest::write_parameters([](std::string_view text) { print(text); }, tuning, with.options,
                               run);
  } else if (!session.quiet) {
    std::size_t width = 4;
    for (const backtest::Tuned& t : tuning.symbols) {
      width = std::min<std::size_t>(24, std::max(width, printable(t.symbol).size()));
    }
    print(table(tuning, width));
    print(fmt::format("{} candidates, {} forecasts; parameters are in {}\n", tuning.candidates,
                      tuning.statistics.forecast, request.output));
    print(conclusion(tuning, request.output));
    print(widths(tuning));
  }
  return market.errors.empty() && tuning.errors.empty() ? ExitStatus::ok : ExitStatus::bad_data;
}

/// A comma-separated flag of whole numbers.
void add_numbers(const Command& command, const char* flag, std::vector<std::size_t>& value,
                 std::uint64_t most, const char* code, const char* help) {
  command
      .add_list_option_function(
          flag,
          [&value, flag, most, code](const std::vector<std::string>& texts) {
            value.clear();
            for (const std::string& text : texts) {
              value.push_back(parse_whole(text, flag, code, 1, most));
            }
          },
          help)
      .comma_separated()
      .type_name("N,...")
      .group("What is tried");
}

void add_candidates(const Command& command, backtest::Candidates& candidates) {
  constexpr const char* group = "What is tried";
  add_numbers(command, "--contexts", candidates.contexts, 10'000'000, "invalid_context",
              "Bars of history (default 64,128,256,512)");
  add_numbers(command, "--samples", candidates.samples, 65'536, "invalid_samples",
              "Trajectories (default 256)");
  command
      .add_list_option_function(
          "--transforms",
          [&candidates](const std::vector<std::string>& words) {
            using backtest::Transform;
            candidates.transforms.clear();
            for (const std::string& word : words) {
              candidates.transforms.push_back(
                  parse_choice<Transform>(word, "--transforms",
                                          {{"none", Transform::none},
                                           {"pct", Transform::pct},
                                           {"log-return", Transform::log_return}}));
            }
          },
          "What the model sees (default none,pct,log-return)")
      .comma_separated()
      .type_name("WORD,...")
      .group(group);
  command
      .add_option("--aggregates", candidates.aggregates,
                  "Point forecasts (default: median, mean, trimmed means, quantiles near the "
                  "middle, ...)")
      .comma_separated()
      .type_name("SPEC,...")
      .group(group);
  add_whole(command, "--validation-windows", candidates.validation_windows, 1, 1'000'000,
            "invalid_windows", "Windows of each symbol that are chosen by (default 60)")
      .group(group);
  add_whole(command, "--test-windows", candidates.test_windows, 1, 1'000'000, "invalid_windows",
            "Later windows, that are reported (default 40)")
      .group(group);
}

}  // namespace

void add_tune(const Command& app, Session& session) {
  const auto request = std::make_shared<TuneRequest>();
  const Command command = add_command(
      app, session, "tune",
      "Chooses context, samples, transform and aggregate for each symbol. It chooses by validation "
      "windows, says on later windows what that was worth, and writes a file of parameters that "
      "toto forecast and toto backtest read. Where the default is as good, it says so and writes "
      "the default.",
      "  toto tune bars/ --horizon 5 --output parameters.json\n"
      "  toto backtest bars/ --horizon 5 --windows 40 --parameters parameters.json\n"
      "  toto forecast bars/*.csv --horizon 5 --parameters parameters.json\n");
  BacktestRequest& with = request->backtest;
  add_market_options(command, with);
  add_window_options(command, with);
  add_candidates(command, request->candidates);
  add_seed_option(command, with.settings, "The forecast");
  add_backtest_model_options(command, with);
  command
      .add_option("--output,-o", request->output,
                  "The file of parameters (default: parameters.json)")
      .type_name("FILE")
      .group(kFirstFlags);
  command.add_option("--cache-dir", with.cache_dir, "Where predictions are kept (default: nowhere)")
      .type_name("DIR")
      .group("Results");
  command.add_flag("--json", with.json, "Print the file to standard output too").group("Results");
  add_counters_option(command, with, "Say what the machine did: one line on standard error");
  command.callback([request, &session] {
    session.run = [request, &session] { return run_tune(*request, session); };
  });
}

}  // namespace toto::cli
