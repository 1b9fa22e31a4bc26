// SPDX-License-Identifier: Apache-2.0
#include "models/toto2/golden.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "models/toto2/golden_folder.h"

namespace toto {
namespace {

using toto2::Block;

// The reference itself moves by 2e-5 between float32 and float64, more where blocks feed medians
// back (spec C5); two float32 programs differ by about as much.
constexpr double kSinglePass = 3e-5;  // and blocks that are fed the reference's medians
constexpr double kFreeBlocks = 3e-4;
constexpr double kFirstHidden = 1e-5;
constexpr double kLaterHidden = 1e-4;
// In float64 the official code still has the mean squares of its norms and its rotary tables in
// float32, as the machine forms them: on another machine it is up to 2e-6 from its own forecasts,
// and up to 1e-5 where medians are fed back. Without those two roundings it agrees to 4e-13.
constexpr double kFloat64 = 3e-6;
constexpr double kFreeFloat64 = 3e-5;
constexpr double kExact = 1e-9;

/// What one run leaves, in the layout of the expected tensors.
class Recorder final : public toto2::Sink {
 public:
  Recorder(const Toto2GoldenFolder& g, const Toto2& net, const Toto2GoldenCall& call)
      : g_(g), net_(net), variates_(g.targets + g.covariates), patch_(net.config().patch_size) {
    patches_ = (call.horizon + patch_ - 1) / patch_;
    context_ = (g.steps + patch_ - 1) / patch_;
  }

  /// Where a request's tokens are: among the rows, and among the reference's tokens, which may
  /// start earlier.
  struct Place {
    std::int32_t row = 0;     // first row
    std::int32_t tokens = 0;  // of each variate
    std::int32_t reference = 0;
  };
  struct Recorded {
    std::int32_t first = 0;                             // patch of the forecast
    std::int32_t patches = 0;                           // b
    std::vector<double> raw;                            // [9][B][A][b][P]
    std::vector<double> quantiles;                      // [9][B][A][b*P]
    std::vector<double> loc, scale;                     // [B][A][C+NP]
    std::map<std::string, std::vector<double>> hidden;  // rows of all tokens, or of the wanted
    std::vector<Place> all, wanted;                     // of each request
  };

  [[nodiscard]] bool wants_raw() const override { return true; }
  [[nodiscard]] bool wants_statistics() const override { return true; }

  void block(const Block& b) override {
    Recorded& to = blocks[b.index];
    to.first = b.first;
    to.patches = b.patches;
    const std::size_t all = g_.batch * static_cast<std::size_t>(variates_);
    const auto cells = static_cast<std::size_t>(std::int64_t{b.patches} * patch_);
    to.raw.resize(kQuantiles * all * cells);
    to.quantiles.resize(to.raw.size());
    to.loc.insert(to.loc.end(), b.loc.begin(), b.loc.end());
    to.scale.insert(to.scale.end(), b.scale.begin(), b.scale.end());
    for (std::int32_t a = 0; a < variates_; ++a) {
      const std::size_t lane = b.request * static_cast<std::size_t>(variates_) + a;
      for (std::int32_t p = 0; p < b.patches; ++p) {
        for (std::int32_t q = 0; q < kQuantiles; ++q) {
          const auto from = ((std::ptrdiff_t{a} * b.patches + p) * kQuantiles + q) * patch_;
          const auto at =
              static_cast<std::ptrdiff_t>((static_cast<std::size_t>(q) * all + lane) * cells +
                                          static_cast<std::size_t>(p * patch_));
          std::copy_n(b.raw.begin() + from, patch_, to.raw.begin() + at);
          std::copy_n(b.quantiles.begin() + from, patch_, to.quantiles.begin() + at);
        }
      }
    }
  }

  Toto2Observer observer(std::int32_t index, const Call& all, const Call& wanted) override {
    Recorded& to = blocks[index];
    for (std::int32_t i = 0; i < all.count; ++i) {
      const CallSlice& a = all.slices[i];
      const CallSlice& w = wanted.slices[i];
      const std::int32_t start = index == 0 ? 0 : a.patch;
      to.all.push_back({a.row, a.tokens, a.patch - start});
      to.wanted.push_back({w.row, w.tokens, w.patch - start});
    }
    return [this, &to, rows = all.rows, wanted_rows = wanted.rows](
               std::int32_t layer, const ConstView& hidden, double factor, bool trimmed) {
      const bool final_norm = layer == net_.config().num_layers;
      const std::string name = layer < 0    ? "tokens"
                               : final_norm ? "norm"
                                            : fmt::format("layer{:02d}", layer);
      const bool few = trimmed || final_norm;
      std::vector<double>& values = to.hidden[few ? name + ".used" : name];
      const auto width = static_cast<std::size_t>(net_.config().d_model);
      values.resize(static_cast<std::size_t>(few ? wanted_rows : rows) * width);
      net_.backend().download(hidden, values);
      for (std::size_t i = 0; i < values.size(); ++i) {
        const auto gain = net_.out_gain();
        values[i] *= final_norm && !gain.empty() ? gain[i % width] : factor;
      }
    };
  }

  /// Of the whole horizon: [9][B][V][horizon].
  [[nodiscard]] std::vector<double> result(std::int32_t horizon) const {
    const auto v_count = static_cast<std::size_t>(g_.targets);
    const auto h = static_cast<std::size_t>(horizon);
    std::vector<double> out(kQuantiles * g_.batch * v_count * h);
    for (const auto& [index, b] : blocks) {
      const auto cells = static_cast<std::size_t>(std::int64_t{b.patches} * patch_);
      const auto first = static_cast<std::size_t>(std::int64_t{b.first} * patch_);
      for (std::size_t row = 0; row < kQuantiles * static_cast<std::size_t>(g_.batch); ++row) {
        for (std::size_t v = 0; v < v_count; ++v) {
          const std::size_t from = (row * static_cast<std::size_t>(variates_) + v) * cells;
          for (std::size_t t = 0; t < cells && first + t < h; ++t) {
            out[(row * v_count + v) * h + first + t] = b.quantiles[from + t];
          }
        }
      }
    }
    return out;
  }

  /// Scales at the last context patch in the first block: [B][A].
  [[nodiscard]] std::vector<double> scales() const {
    const Recorded& first = blocks.at(0);
    std::vector<double> out;
    const auto patches = static_cast<std::size_t>(std::int64_t{context_} + patches_);
    out.reserve(first.scale.size() / patches);
    for (std::size_t lane = 0; lane < first.scale.size() / patches; ++lane) {
      out.push_back(first.scale[lane * patches + static_cast<std::size_t>(context_) - 1]);
    }
    return out;
  }

  std::map<std::int32_t, Recorded> blocks;

 private:
  const Toto2GoldenFolder& g_;
  const Toto2& net_;
  std::int32_t variates_, patch_, patches_, context_;
};

/// max |y-e| / unit(i); equal infinities and two NaN differ by nothing.
template <typename Unit>
Difference largest(const std::vector<double>& found, const std::vector<double>& expected,
                   const Unit& unit) {
  Difference worst;
  if (found.size() != expected.size() || found.empty()) {
    worst.error = std::numeric_limits<double>::infinity();
    return worst;
  }
  for (std::size_t i = 0; i < found.size(); ++i) {
    double error = 0;
    if (found[i] != expected[i] && !(std::isnan(found[i]) && std::isnan(expected[i]))) {
      error = std::abs(found[i] - expected[i]) / unit(i);
      if (!std::isfinite(error)) error = std::numeric_limits<double>::infinity();
    }
    if (i == 0 || error > worst.error) worst = {error, i, expected[i], found[i]};
  }
  return worst;
}

class Case {
 public:
  Case(const Toto2GoldenFolder& g, const Toto2& net, bool exact, std::vector<GoldenDifference>& out)
      : g_(g), net_(net), exact_(exact), out_(out) {}

  void run(const Toto2GoldenCall& call) {
    prefix_ = call.name + ".";
    Recorder free_run(g_, net_, call);
    generate(g_.requests(call), free_run);
    const bool one_pass = free_run.blocks.size() == 1;
    if (exact_) {
      compare_exact(call, free_run);
      if (one_pass || g_.find(prefix_ + "quantiles64") == nullptr) return;
    } else {
      compare_result(prefix_ + "quantiles", call, free_run, one_pass ? kSinglePass : kFreeBlocks);
      compare_blocks(free_run, one_pass);
      if (one_pass || g_.find(prefix_ + "block00.feedback") == nullptr) return;
    }
    // Again with the reference's medians, so that every block is comparable on its own.
    const std::vector<std::vector<double>> medians =
        exact_ ? exact_medians(call) : reference_medians(call);
    std::vector<toto2::Request> requests = g_.requests(call);
    for (std::size_t b = 0; b < requests.size(); ++b) requests[b].feedback = medians[b];
    Recorder forced(g_, net_, call);
    generate(requests, forced);
    if (exact_) {
      compare_result(prefix_ + "quantiles64", call, forced, kFloat64);
    } else {
      compare_blocks(forced, true);
    }
  }

 private:
  void generate(const std::vector<toto2::Request>& requests, Recorder& to) {
    toto2::generate(net_, requests, to);
    scales_ = to.scales();
  }

  void add(const std::string& tensor, const std::string& measure, const Difference& d, double bound,
           const std::vector<std::int64_t>& shape) {
    out_.push_back({tensor, measure, d, bound, shape});
  }

  /// `cells` values of each of [..][B][A]; the scale is that of the lane.
  void compare_scaled(const std::string& name, const std::vector<double>& found, std::size_t cells,
                      std::size_t variates, double bound) {
    const Toto2GoldenTensor* expected = g_.find(name);
    if (expected == nullptr) return;
    const std::size_t all = scales_.size() / static_cast<std::size_t>(g_.batch);
    const auto unit = [&](std::size_t i) {
      const std::size_t lane = i / cells % (variates * static_cast<std::size_t>(g_.batch));
      return scales_[lane / variates * all + lane % variates] + std::abs(expected->values[i]);
    };
    add(name, "|y-e| / (scale+|e|)", largest(found, expected->values, unit), bound,
        expected->shape);
  }

  void compare_result(const std::string& name, const Toto2GoldenCall& call, const Recorder& run,
                      double bound) {
    compare_scaled(name, run.result(call.horizon), static_cast<std::size_t>(call.horizon),
                   static_cast<std::size_t>(g_.targets), bound);
  }

  /// Where there is nothing in float64, the statistics at least do not depend on the precision,
  /// fallback excepted.
  void compare_exact(const Toto2GoldenCall& call, const Recorder& run) {
    const std::string name = prefix_ + "quantiles64";
    if (g_.find(name) != nullptr) {
      compare_result(name, call, run, run.blocks.size() == 1 ? kFloat64 : kFreeFloat64);
      compare_result(name + ".exact", call, run, kExact);
    } else if (call.fallback == 0) {
      compare_statistics(prefix_ + "block00.", run.blocks.at(0));
    }
  }

  void compare_statistics(const std::string& prefix, const Recorder::Recorded& b) {
    const std::size_t patches = b.loc.size() / scales_.size();
    const std::size_t variates = scales_.size() / static_cast<std::size_t>(g_.batch);
    compare_scaled(prefix + "loc", b.loc, patches, variates, kSinglePass);
    compare_scaled(prefix + "scale", b.scale, patches, variates, kSinglePass);
  }

  /// `alike`: these blocks had the reference's values to start from.
  void compare_blocks(const Recorder& run, bool alike) {
    for (const auto& [index, b] : run.blocks) {
      if (!alike && index > 0) continue;
      const std::string prefix = fmt::format("{}block{:02d}.", prefix_, index);
      const auto patch = static_cast<std::size_t>(net_.config().patch_size);
      const std::size_t variates = scales_.size() / static_cast<std::size_t>(g_.batch);
      compare_scaled(prefix + "quantiles", b.quantiles, static_cast<std::size_t>(b.patches) * patch,
                     variates, kSinglePass);
      compare_statistics(prefix, b);
      const double hidden = index == 0 ? kFirstHidden : kLaterHidden;
      compare_peak(prefix + "raw", b.raw, hidden);
      for (const auto& [name, rows] : b.hidden) compare_hidden(prefix, name, rows, b, hidden);
    }
  }

  void compare_peak(const std::string& name, const std::vector<double>& found, double bound) {
    const Toto2GoldenTensor* expected = g_.find(name);
    if (expected == nullptr) return;
    double peak = 0;
    for (const double e : expected->values) peak = std::max(peak, std::abs(e));
    add(name, "|y-e| / max|e|", largest(found, expected->values, [&](std::size_t) { return peak; }),
        bound, expected->shape);
  }

  /// Rows that were computed against those of the file, which has all tokens, the used ones or the
  /// first of these.
  void compare_hidden(const std::string& prefix, const std::string& name,
                      const std::vector<double>& rows, const Recorder::Recorded& b, double bound) {
    const bool few = name.ends_with(".used");
    const std::string layer = few ? name.substr(0, name.size() - 5) : name;
    const auto& places = few ? b.wanted : b.all;
    std::vector<Recorder::Place> anchors = b.wanted;
    for (Recorder::Place& anchor : anchors) anchor.tokens = 1;
    compare_rows(prefix + layer + ".used", rows, places, b.wanted, true, bound);
    compare_rows(prefix + layer + ".anchor", rows, places, anchors, true, bound);
    compare_rows(prefix + layer, rows, places, places, false, bound);
  }

  /// The tokens of `asked`, by their numbers in the reference; `from_first`: the file has none
  /// before those.
  void compare_rows(const std::string& name, const std::vector<double>& rows,
                    const std::vector<Recorder::Place>& places,
                    const std::vector<Recorder::Place>& asked, bool from_first, double bound) {
    const Toto2GoldenTensor* expected = g_.find(name);
    if (expected == nullptr) return;
    const auto width = static_cast<std::ptrdiff_t>(net_.config().d_model);
    const auto lanes = static_cast<std::ptrdiff_t>(scales_.size());
    const std::ptrdiff_t variates = lanes / g_.batch;
    const std::ptrdiff_t listed =
        static_cast<std::ptrdiff_t>(expected->values.size()) / (lanes * width);
    std::vector<double> found;
    std::vector<double> wanted;
    double peak = 0;
    for (const double e : expected->values) peak = std::max(peak, std::abs(e));
    for (std::ptrdiff_t lane = 0; lane < lanes; ++lane) {
      const Recorder::Place& place = places[static_cast<std::size_t>(lane / variates)];
      const Recorder::Place& tokens = asked[static_cast<std::size_t>(lane / variates)];
      const std::ptrdiff_t row =
          place.row + lane % variates * place.tokens + tokens.reference - place.reference;
      const std::ptrdiff_t at = from_first ? 0 : tokens.reference;
      if (at + tokens.tokens > listed) {
        refuse_golden(g_.path, fmt::format("{} has {} tokens, expected {} or more", name, listed,
                                           at + tokens.tokens));
      }
      const auto from = rows.begin() + row * width;
      const auto e = expected->values.begin() + (lane * listed + at) * width;
      found.insert(found.end(), from, from + tokens.tokens * width);
      wanted.insert(wanted.end(), e, e + tokens.tokens * width);
    }
    add(name, "|y-e| / max|e|", largest(found, wanted, [&](std::size_t) { return peak; }), bound,
        {static_cast<std::int64_t>(found.size()) / width, width});
  }

  /// [B] of [V][NP*P], joined from the blocks of the file; zeros after the last that is fed back.
  [[nodiscard]] std::vector<std::vector<double>> reference_medians(
      const Toto2GoldenCall& call) const {
    const auto patch = static_cast<std::size_t>(net_.config().patch_size);
    const std::size_t steps = (static_cast<std::size_t>(call.horizon) + patch - 1) / patch * patch;
    const auto targets = static_cast<std::size_t>(g_.targets);
    std::vector<std::vector<double>> medians(static_cast<std::size_t>(g_.batch),
                                             std::vector<double>(targets * steps));
    std::size_t done = 0;
    for (std::size_t index = 0;; ++index) {
      const auto* fed = g_.find(fmt::format("{}block{:02d}.feedback", prefix_, index));
      if (fed == nullptr) return medians;
      const std::size_t cells = fed->values.size() / (medians.size() * targets);
      for (std::size_t lane = 0; lane < medians.size() * targets; ++lane) {
        for (std::size_t t = 0; t < cells && done + t < steps; ++t) {
          medians[lane / targets][lane % targets * steps + done + t] =
              fed->values[lane * cells + t];
        }
      }
      done += cells;
    }
  }

  /// The same from `quantiles64`, which reaches as far as the horizon: what lies beyond is of the
  /// last block.
  [[nodiscard]] std::vector<std::vector<double>> exact_medians(const Toto2GoldenCall& call) const {
    const std::vector<double>& all = g_.find(prefix_ + "quantiles64")->values;
    const auto patch = static_cast<std::size_t>(net_.config().patch_size);
    const auto horizon = static_cast<std::size_t>(call.horizon);
    const std::size_t steps = (horizon + patch - 1) / patch * patch;
    const auto targets = static_cast<std::size_t>(g_.targets);
    std::vector<std::vector<double>> medians(static_cast<std::size_t>(g_.batch),
                                             std::vector<double>(targets * steps));
    for (std::size_t lane = 0; lane < medians.size() * targets; ++lane) {
      const std::size_t from = (kQuantiles / 2 * medians.size() * targets + lane) * horizon;
      for (std::size_t t = 0; t < horizon; ++t) {
        medians[lane / targets][lane % targets * steps + t] = all.at(from + t);
      }
    }
    return medians;
  }

  const Toto2GoldenFolder& g_;
  const Toto2& net_;
  bool exact_;
  std::vector<GoldenDifference>& out_;
  std::string prefix_;
  std::vector<double> scales_;  // [B][A]
};

class Toto2Golden final : public GoldenOutputs {
 public:
  explicit Toto2Golden(Toto2GoldenFolder folder) : folder_(std::move(folder)) {}

  [[nodiscard]] std::shared_ptr<const WeightSource> weights() const override {
    return folder_.weights;
  }
  [[nodiscard]] bool full_size(const ModelInfo& info) const override {
    return info.embed_dim >= 256;
  }
  [[nodiscard]] std::vector<GoldenDifference> compare(const Network& net, const ModelInfo& /*info*/,
                                                      bool exact) const override {
    std::vector<GoldenDifference> all;
    Case one(folder_, dynamic_cast<const Toto2&>(net), exact, all);
    for (const Toto2GoldenCall& call : folder_.calls) one.run(call);
    return all;
  }

 private:
  Toto2GoldenFolder folder_;
};

}  // namespace

std::unique_ptr<GoldenOutputs> read_toto2_golden(const Toto2Config& config,
                                                 const std::string& folder) {
  return std::make_unique<Toto2Golden>(read_toto2_golden_folder(config, folder));
}

}  // namespace toto
