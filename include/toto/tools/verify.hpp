// SPDX-License-Identifier: Apache-2.0
// Verification: comparing this build with outputs of the official implementation, and saying
// whether this build, on this machine, with this checkpoint and these series, may be deployed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "toto/forecast.hpp"
#include "toto/model.hpp"
#include "toto/settings.hpp"

#pragma GCC visibility push(default)
namespace toto {

/// One tensor compared.
struct TensorCheck {
  std::string tensor;     ///< name in expected.safetensors
  std::string execution;  ///< "eager": the reference's order of operations; "planned": shared
                          ///< context, folded head, trimmed last layers
  std::string measure;    ///< how the error is formed, in words
  double error = 0;       ///< the largest; infinite where a value is not finite or a shape differs
  double bound = 0;
  std::string place;    ///< index of the largest error, e.g. "[0,2,17]"
  double expected = 0;  ///< the two values there
  double found = 0;
  [[nodiscard]] bool holds() const { return error <= bound; }
};

struct GoldenCase {
  std::string folder;
  std::string model;  ///< e.g. "4 layers, width 32, weights from the file"
  bool full_size = false;
  double seconds = 0;  ///< loading and running
  std::vector<TensorCheck> checks;
  [[nodiscard]] bool holds() const;
};

struct GoldenReport {
  std::string backend;
  std::string precision;
  std::vector<GoldenCase> cases;
  [[nodiscard]] bool holds() const;  ///< every check of every case, and there is at least one
};

/// Runs folders in the format of docs/verification.md: config.json, model.safetensors or
/// weights.json, inputs.safetensors, expected.safetensors. Bounds: forecasts, distributions and
/// teacher-forced steps 2e-5 (full size: 1e-4) of scale + |expected|; hidden states 1e-5 (1e-4) of
/// the tensor's largest value; Toto 2.0 and shorter types have theirs. Throws Error for files that
/// are missing (66) or malformed (65, 78).
GoldenReport verify_golden(std::span<const std::string> folders, const LoadOptions& asked = {});

/// How much is run. The times are for the published architecture on two cores.
enum class Suite {
  quick,  ///< less than a minute
  full,   ///< less than a quarter of an hour: every mode and type in everything
  soak,   ///< `full`, then forecasts for `soak_seconds` with flat memory and unchanged bits
};

enum class Verdict {
  holds,
  warning,        ///< within its bound, but worth a look; never by itself a reason to fail
  fails,          ///< beyond its bound
  could_not_run,  ///< nothing was measured; counts as a failure
};

/// One thing that was measured, and what it may be at most.
struct Check {
  std::string group;  ///< correctness, determinism, performance, stability, accuracy, environment,
                      ///< history, golden
  std::string name;   ///< unique within the group, the same from run to run
  std::string measure;  ///< what was measured, in words
  double value = 0;     ///< not finite where nothing was measured
  double bound = 0;     ///< `value` may be so large and no larger
  std::string unit;     ///< of both; empty: a plain number
  Verdict verdict = Verdict::could_not_run;
  std::string why;        ///< how the verdict came about: which criterion, and where it was worst
  std::string reproduce;  ///< a command that measures it again
  [[nodiscard]] double margin() const { return bound - value; }
  [[nodiscard]] bool holds() const {
    return verdict == Verdict::holds || verdict == Verdict::warning;
  }
};

/// Figures that have no bound of their own.
struct VerifyTable {
  std::string title;
  std::string note;
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows;
};

struct VerifyReport {
  Suite suite = Suite::quick;
  std::string program;  ///< "toto 0.1.0"
  std::string model;
  std::string model_hash;
  bool synthetic = false;  ///< hash weights
  std::string data;        ///< which series were used, in words
  std::string command;     ///< as it was typed
  std::string started;     ///< UTC, ISO 8601
  double seconds = 0;
  bool partial = false;  ///< only some checks were asked for: never a verdict
  std::vector<std::pair<std::string, std::string>> environment;
  std::vector<Check> checks;
  std::vector<VerifyTable> tables;
  /// Every check ran and held, there is at least one, and none was left out.
  [[nodiscard]] bool holds() const;
  /// ok; attention where it is partial and every check that was asked for held; else
  /// verification_failed.
  [[nodiscard]] ExitStatus status() const;
};

struct VerifyOptions {
  Suite suite = Suite::quick;
  ModelQuery query;
  LoadOptions load;  ///< backend, threads, and the mode and type that are to be deployed
  /// Modes that are judged; `eager` float32 always is, since all are compared with it. Empty: the
  /// mode in force alone. With a list, bfloat16 is judged on a CPU too: in the mode in force, in
  /// `full` and `soak` in all of them.
  std::vector<Mode> modes;
  std::vector<SettingLine> settings;           ///< shown in the report
  std::vector<std::string> unknown_variables;  ///< TOTO_* names that nothing reads
  /// Memory limit, number of plans and plan cache in force: every forecaster of a mode is made with
  /// them. The plan cache is read and never written: odd shapes must not drive out a service's.
  ForecasterOptions forecaster;
  std::uint64_t seed = 0;
  std::span<const Series> data;     ///< the user's series, targets only; empty: series made here
  std::string data_name;            ///< for the report
  std::vector<std::string> golden;  ///< folders; part of every suite
  std::string record;               ///< file to leave the forecasts' parameters in; empty: none.
                                    ///< One that is there is replaced only by a whole run that held
  std::string against;              ///< such a file of an earlier run; empty: none
  double soak_seconds = 600;
  std::string only;     ///< runs only the items whose name contains this; the report is partial
  std::string command;  ///< as it was typed, for the report
  /// How often this process has called operator new.
  std::function<std::uint64_t()> allocations;
  /// What verify_bits() returns for the same options in another process.
  std::function<std::string()> second_process;
  /// Called before each item; returns false to stop (throws Error interrupted).
  std::function<bool(std::size_t done, std::size_t total, std::string_view item)> progress;
};

/// Runs a suite. A check that throws is a check that could not run, and so is one for which a
/// function above is missing; neither is skipped. Throws Error: model errors as Model::load does,
/// interrupted (130).
VerifyReport verify_suite(const VerifyOptions& asked);

/// How far today's forecasts are from those of a record that `record` left: compares with
/// `asked.against` and does nothing else. The checks are of group history: `model` and one for
/// each series.
VerifyReport verify_drift(const VerifyOptions& asked);
/// ok: no parameter has drifted by more than 1e-5 of scale; attention: one has;
/// verification_failed: something could not be compared (another model, other series or values, a
/// failure).
ExitStatus drift_status(const VerifyReport& report);
/// For a program: format "toto-drift 1".
std::string drift_json(const VerifyReport& report);

/// Digests of parameters, statistics and trajectories of fixed requests in every mode, to be
/// compared with those of another process. Throws what a forecast throws.
std::string verify_bits(const VerifyOptions& asked);

/// The report for a program (docs/verify.schema.json), for a text page and for a browser.
std::string verify_json(const VerifyReport& report);
std::string verify_markdown(const VerifyReport& report);
std::string verify_html(const VerifyReport& report);

/// "quick", "full", "soak"; "holds", "warning", "fails", "could not run".
std::string_view word(Suite suite);
std::string_view word(Verdict verdict);

}  // namespace toto
#pragma GCC visibility pop
