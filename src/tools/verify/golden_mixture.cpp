// SPDX-License-Identifier: Apache-2.0
#include "tools/verify/golden_mixture.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>

#include "engine/engine.h"
#include "tools/verify/compare.h"
#include "tools/verify/golden_case.h"

namespace toto {
namespace {

struct Bounds {
  double output;
  double hidden;
};

bool is_full_size(const ModelInfo& info) { return info.embed_dim >= 512; }

Bounds bounds_of(const ModelInfo& info) {
  return is_full_size(info) ? Bounds{1e-4, 1e-4} : Bounds{2e-5, 1e-5};
}

/// Parameters and values of a run, in the layout of the expected tensors.
class GoldenProbe final : public Probe {
 public:
  GoldenProbe(const GoldenFolder& g, std::size_t trajectories, std::size_t patch)
      : batch_(g.batch), variates_(g.variates), trajectories_(trajectories), patch_(patch) {}

  struct Step {
    std::vector<double> part[4];                   // [N*B][V][P][K]: df, loc, scale, probability
    std::vector<double> affine_loc, affine_scale;  // [N*B][V][P]
  };

  /// Whoever looks at the rows of the network counts on all of them being there.
  void expect_whole() { whole_ = true; }
  void begin(std::size_t /*first*/, std::size_t count) override {
    if (!whole_ || count == batch_) return;
    throw Error(ExitStatus::internal, "out_of_memory", "a golden case does not fit at once", {},
                "free memory, or export smaller cases");
  }
  [[nodiscard]] bool wants_parameters(std::int32_t) const override { return true; }
  [[nodiscard]] bool wants_statistics() const override { return whole_; }
  void statistics(std::span<const double> l, std::span<const double> s) override {
    loc.assign(l.begin(), l.end());
    scale.assign(s.begin(), s.end());
  }
  [[nodiscard]] bool wants_layers() const override { return on_layer != nullptr; }
  void layer(std::int32_t index, std::span<const double> hidden, bool trimmed) override {
    on_layer(index, hidden, trimmed);
  }

  void parameters(const PatchView& at, std::span<const double> params, std::span<const double> locs,
                  std::span<const double> scales) override {
    Step& step = steps[at.iteration];
    const auto k_count = static_cast<std::size_t>(at.components);
    const auto asked = static_cast<std::size_t>(at.steps);
    const std::size_t lanes = trajectories_ * batch_ * variates_;
    for (auto& part : step.part) part.resize(lanes * patch_ * k_count);
    step.affine_loc.resize(lanes * patch_);
    step.affine_scale.resize(lanes * patch_);
    // One shared context stands for every trajectory.
    const bool shared = at.trajectories == 1 && at.iteration == 0 && at.first_sample == 0;
    for (std::size_t n = 0;
         n < (shared ? trajectories_ : static_cast<std::size_t>(at.trajectories)); ++n) {
      for (std::size_t v = 0; v < variates_; ++v) {
        const std::size_t from = (shared ? 0 : n) * variates_ + v;
        const std::size_t sample = static_cast<std::size_t>(at.first_sample) + n;
        const std::size_t to = (sample * batch_ + at.series) * variates_ + v;
        for (std::size_t t = 0; t < patch_; ++t) {
          step.affine_loc[to * patch_ + t] = locs[from * patch_ + t];
          step.affine_scale[to * patch_ + t] = scales[from * patch_ + t];
        }
        for (std::size_t t = 0; t < asked; ++t) {
          for (std::size_t part = 0; part < 4; ++part) {
            for (std::size_t k = 0; k < k_count; ++k) {
              step.part[part][(to * patch_ + t) * k_count + k] =
                  params[((from * asked + t) * 4 + part) * k_count + k];
            }
          }
        }
      }
    }
  }

  void values(const PatchView& at, std::span<const double> y) override {
    std::vector<double>& all = patches[at.iteration];
    all.resize(batch_ * variates_ * patch_);
    if (at.first_sample == 0) {
      std::copy_n(y.begin(), variates_ * patch_,
                  all.begin() + static_cast<std::ptrdiff_t>(at.series * variates_ * patch_));
    }
  }

  std::function<void(std::int32_t, std::span<const double>, bool)> on_layer;
  std::vector<double> loc, scale;  // of the prefill, [rows][P]
  std::map<std::int32_t, Step> steps;
  std::map<std::int32_t, std::vector<double>> patches;  // of trajectory 0: [B][V][P]

 private:
  std::size_t batch_, variates_, trajectories_, patch_;
  bool whole_ = false;
};

class Case {
 public:
  Case(const GoldenFolder& g, const Network& net, const ModelInfo& info,
       std::vector<GoldenDifference>& out)
      : g_(g),
        net_(net),
        info_(info),
        out_(out),
        bounds_(bounds_of(info)),
        patch_(static_cast<std::size_t>(net.patch())),
        plans_(net, {}) {
    for (std::size_t b = 0; b < g.batch; ++b) series_.push_back(g.series(b));
  }

  void run() {
    prefill();
    mean("mean.cached", true);
    mean("mean.uncached", false);
    forced();
  }

 private:
  void add(const std::string& tensor, const std::string& measure, const Difference& d, double bound,
           const std::vector<std::int64_t>& shape) {
    out_.push_back({tensor, measure, d, bound, shape});
  }

  void compare_distribution(const std::string& prefix, const GoldenProbe::Step& step,
                            std::size_t rows) {
    static constexpr const char* kParts[] = {"df", "loc", "scale", "probs"};
    const bool mixture = info_.head == "mixture";
    std::vector<std::int64_t> shape = {static_cast<std::int64_t>(rows),
                                       static_cast<std::int64_t>(g_.variates),
                                       static_cast<std::int64_t>(patch_)};
    if (mixture) shape.push_back(info_.components);
    for (std::size_t part = 0; part < (mixture ? 4U : 3U); ++part) {
      const std::string name = prefix + kParts[part];
      const GoldenTensor& expected = g_.at(name, shape);
      add(name, "|y-e| / (1+|e|)", largest_difference(step.part[part], expected.values, {}),
          bounds_.output, shape);
    }
  }

  void run_engine(const std::vector<Series>& series, std::size_t horizon, std::int32_t trajectories,
                  const std::vector<std::vector<float>>& forced, Generation g, Probe& probe,
                  const Limits& limits) {
    std::vector<SeriesRequest> requests;
    for (std::size_t i = 0; i < series.size(); ++i) {
      SeriesRequest r;
      r.series = &series[i];
      r.horizon = horizon;
      r.trajectories = trajectories;
      if (!forced.empty()) r.forced = forced[i];
      requests.push_back(r);
    }
    g.probe = &probe;
    NoResults nobody;
    Engine(net_, plans_).run(requests, g, limits, nobody);
  }

  void prefill() {
    std::vector<Series> series = series_;
    for (Series& s : series) s.future_exogenous = {};
    const std::size_t labels = info_.variate_labels ? 1 : 0;
    const std::size_t tokens = (g_.steps + patch_ - 1) / patch_;
    GoldenProbe probe(g_, 1, patch_);
    probe.expect_whole();
    probe.on_layer = [&](std::int32_t layer, std::span<const double> hidden, bool trimmed) {
      compare_hidden(layer, hidden, trimmed, tokens, labels);
    };
    Limits all;
    all.rows =
        std::max(all.rows, static_cast<std::int64_t>(g_.batch * g_.variates * (tokens + labels)));
    run_engine(series, patch_, 0, {}, {}, probe, all);
    compare_statistics(probe.loc, probe.scale, tokens, labels);
    compare_distribution("prefill.dist.", probe.steps.at(0), g_.batch);
  }

  void expect_shape(const GoldenTensor& tensor, const std::vector<std::size_t>& sizes) const {
    (void)g_.at(tensor.name, std::vector<std::int64_t>(sizes.begin(), sizes.end()));
  }

  /// The third size of a tensor of hidden rows: with the label token or without it.
  static std::size_t listed_tokens(const GoldenTensor& expected, std::size_t tokens,
                                   std::size_t labels) {
    const std::size_t all = tokens + labels;
    return expected.shape.size() == 4 && expected.shape[2] == static_cast<std::int64_t>(all)
               ? all
               : tokens;
  }

  void compare_hidden(std::int32_t layer, std::span<const double> rows, bool trimmed,
                      std::size_t tokens, std::size_t labels) {
    const std::string name = fmt::format("prefill.layer{:02d}", layer);
    const GoldenTensor* expected = g_.find(name);
    if (expected == nullptr) return;  // full-size cases need not have them
    const auto width = static_cast<std::size_t>(info_.embed_dim);
    const std::size_t lanes = g_.batch * g_.variates;
    const std::size_t kept = trimmed ? 1 : tokens + labels;
    // The file may or may not have the label token.
    const std::size_t listed = listed_tokens(*expected, tokens, labels);
    expect_shape(*expected, {g_.batch, g_.variates, listed, width});
    std::vector<double> found;
    std::vector<float> wanted;
    for (std::size_t lane = 0; lane < lanes; ++lane) {
      for (std::size_t t = trimmed ? listed - 1 : 0; t < listed; ++t) {
        const std::size_t row = trimmed ? lane : lane * kept + t + (kept - listed);
        const auto from = rows.begin() + static_cast<std::ptrdiff_t>(row * width);
        found.insert(found.end(), from, from + static_cast<std::ptrdiff_t>(width));
        const auto e =
            expected->values.begin() + static_cast<std::ptrdiff_t>((lane * listed + t) * width);
        wanted.insert(wanted.end(), e, e + static_cast<std::ptrdiff_t>(width));
      }
    }
    add(name, "|y-e| / max|e|", largest_relative_to_peak(found, wanted), bounds_.hidden,
        {static_cast<std::int64_t>(g_.batch), static_cast<std::int64_t>(g_.variates),
         static_cast<std::int64_t>(trimmed ? 1 : listed), static_cast<std::int64_t>(width)});
  }

  void compare_statistics(const std::vector<double>& loc, const std::vector<double>& scale,
                          std::size_t tokens, std::size_t labels) {
    const GoldenTensor* expected = g_.find("prefill.loc");
    if (expected == nullptr) return;
    const std::vector<std::int64_t> shape = expected->shape;
    const std::size_t listed =
        shape.size() == 3 && shape[2] == 1 ? 1 : tokens;  // 1 for the global scaler
    expect_shape(*expected, {g_.batch, g_.variates, listed});
    std::vector<double> found_loc, found_scale;
    for (std::size_t lane = 0; lane < g_.batch * g_.variates; ++lane) {
      for (std::size_t t = 0; t < listed; ++t) {
        const std::size_t at = (lane * (tokens + labels) + labels + t) * patch_;
        found_loc.push_back(loc[at]);
        found_scale.push_back(scale[at]);
      }
    }
    const GoldenTensor& expected_scale = g_.at("prefill.scale", shape);
    add("prefill.loc", "|y-e| / (scale+|e|)",
        largest_difference(found_loc, expected->values, found_scale), bounds_.output, shape);
    add("prefill.scale", "|y-e| / (scale+|e|)",
        largest_difference(found_scale, expected_scale.values, found_scale), bounds_.output, shape);
  }

  void mean(const std::string& name, bool cached) {
    Generation g;
    g.mean = true;
    g.cached = cached;
    GoldenProbe probe(g_, 1, patch_);
    run_engine(series_, g_.horizon, 1, {}, g, probe, {});
    std::vector<double> found, scales;
    for (std::size_t lane = 0; lane < g_.batch * g_.variates; ++lane) {
      for (std::size_t t = 0; t < g_.horizon; ++t) {
        const auto iteration = static_cast<std::int32_t>(t / patch_);
        const std::size_t at = lane * patch_ + t % patch_;
        found.push_back(probe.patches.at(iteration)[at]);
        scales.push_back(probe.steps.at(iteration).affine_scale[at]);
      }
    }
    const std::vector<std::int64_t> shape = {static_cast<std::int64_t>(g_.batch),
                                             static_cast<std::int64_t>(g_.variates),
                                             static_cast<std::int64_t>(g_.horizon)};
    add(name, "|y-e| / (scale+|e|)", largest_difference(found, g_.at(name, shape).values, scales),
        bounds_.output, shape);
  }

  void forced() {
    const GoldenTensor* any = g_.find("forced.samples");
    if (any == nullptr) return;
    const std::size_t patches = (g_.horizon + patch_ - 1) / patch_;
    const std::size_t rows = static_cast<std::size_t>(any->shape.empty() ? 0 : any->shape[0]);
    if (rows == 0 || rows % g_.batch != 0) {
      refuse_golden(g_.path, fmt::format("forced.samples has {} rows, expected a multiple of the "
                                         "{} series",
                                         rows, g_.batch));
    }
    const GoldenTensor& samples = g_.at(
        "forced.samples", {static_cast<std::int64_t>(rows), static_cast<std::int64_t>(g_.variates),
                           static_cast<std::int64_t>(patches * patch_)});
    const std::size_t trajectories = rows / g_.batch;
    // From [N*B][V][R*P] to one [N][V][R*P] for each series.
    const std::size_t cells = g_.variates * patches * patch_;
    std::vector<std::vector<float>> forced(g_.batch);
    for (std::size_t n = 0; n < trajectories; ++n) {
      for (std::size_t b = 0; b < g_.batch; ++b) {
        const auto from =
            samples.values.begin() + static_cast<std::ptrdiff_t>((n * g_.batch + b) * cells);
        forced[b].insert(forced[b].end(), from, from + static_cast<std::ptrdiff_t>(cells));
      }
    }
    std::vector<Series> series = series_;
    for (Series& s : series) s.future_exogenous = {};  // they are in the forced values
    GoldenProbe probe(g_, trajectories, patch_);
    run_engine(series, patches * patch_, static_cast<std::int32_t>(trajectories), forced, {}, probe,
               {});
    for (std::size_t i = 0; i < patches; ++i) {
      const GoldenProbe::Step& step = probe.steps.at(static_cast<std::int32_t>(i));
      const std::string prefix = fmt::format("forced.step{:02d}.", i);
      compare_distribution(prefix, step, rows);
      compare_affine(prefix, step, rows);
    }
  }

  void compare_affine(const std::string& prefix, const GoldenProbe::Step& step, std::size_t rows) {
    const std::vector<std::int64_t> shape = {static_cast<std::int64_t>(rows),
                                             static_cast<std::int64_t>(g_.variates)};
    std::vector<double> loc, scale;  // of the last step
    for (std::size_t lane = 0; lane < rows * g_.variates; ++lane) {
      loc.push_back(step.affine_loc[lane * patch_ + patch_ - 1]);
      scale.push_back(step.affine_scale[lane * patch_ + patch_ - 1]);
    }
    add(prefix + "affine_loc", "|y-e| / (scale+|e|)",
        largest_difference(loc, g_.at(prefix + "affine_loc", shape).values, scale), bounds_.output,
        shape);
    add(prefix + "affine_scale", "|y-e| / (scale+|e|)",
        largest_difference(scale, g_.at(prefix + "affine_scale", shape).values, scale),
        bounds_.output, shape);
  }

  const GoldenFolder& g_;
  const Network& net_;
  const ModelInfo& info_;
  std::vector<GoldenDifference>& out_;
  Bounds bounds_;
  std::size_t patch_;
  PlanTable plans_;
  std::vector<Series> series_;
};

class MixtureGolden final : public GoldenOutputs {
 public:
  explicit MixtureGolden(GoldenFolder folder) : folder_(std::move(folder)) {}

  [[nodiscard]] std::shared_ptr<const WeightSource> weights() const override {
    return folder_.weights;
  }
  [[nodiscard]] bool full_size(const ModelInfo& info) const override { return is_full_size(info); }
  [[nodiscard]] std::vector<GoldenDifference> compare(const Network& net, const ModelInfo& info,
                                                      bool /*exact*/) const override {
    if (net.components() == 0) {
      refuse_golden(folder_.path,
                    fmt::format("models of the family {} have no such folders", info.architecture));
    }
    std::vector<GoldenDifference> all;
    Case(folder_, net, info, all).run();
    return all;
  }

 private:
  GoldenFolder folder_;
};

}  // namespace

std::unique_ptr<GoldenOutputs> read_mixture_golden(const Configuration& config,
                                                   const std::string& folder) {
  return std::make_unique<MixtureGolden>(read_golden_folder(config, folder));
}

}  // namespace toto
