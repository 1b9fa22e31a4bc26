// SPDX-License-Identifier: Apache-2.0
// The same bits again: in another process, in another batch, order or chunk, on other threads; and
// other bits for another seed.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>

#include "core/draw.h"
#include "core/philox.h"
#include "verify/groups.h"

namespace toto::verify {
namespace {

constexpr std::size_t kSamples = 6;

/// What is forecast: two patches, so that trajectories are fed back.
struct Request {
  std::vector<OwnedSeries> owned;
  std::vector<Series> series;
  ForecastOptions options;
};

Request request_for(const Experiment& e, std::size_t patch) {
  Request r;
  const std::size_t steps = e.quick() ? 4 * patch : 16 * patch;
  r.owned = own_series(e, steps, e.quick() ? 8 : 64);
  r.series = views(r.owned);
  r.options.horizon = patch + patch / 2 + 1;
  r.options.num_samples = kSamples;
  r.options.keep_samples = true;
  r.options.keep_parameters = true;
  r.options.seed = e.options.seed;
  return r;
}

std::size_t patch_of(const Model& model) {
  return static_cast<std::size_t>(model.info().patch_size);
}

/// Everything in a forecast that could differ.
template <typename Visit>
void for_each_part(const Forecast& f, const Visit& visit) {
  const Parameters& p = f.parameters;
  for (const auto* part :
       {&p.df, &p.loc, &p.scale, &p.probability, &p.affine_loc, &p.affine_scale}) {
    visit(std::as_bytes(std::span(*part)));
  }
  for (const auto* part : {&f.mean, &f.median, &f.std, &f.quantiles, &f.samples}) {
    visit(std::as_bytes(std::span(*part)));
  }
}

std::string bytes_of(const Forecast& f) {
  std::string bytes;
  for_each_part(f, [&](std::span<const std::byte> part) {
    bytes.append(reinterpret_cast<const char*>(part.data()), part.size());
  });
  return bytes;
}

/// How many bytes of two forecasts differ.
std::size_t different_bytes(const Forecast& a, const Forecast& b) {
  const std::string left = bytes_of(a);
  const std::string right = bytes_of(b);
  std::size_t count =
      left.size() > right.size() ? left.size() - right.size() : right.size() - left.size();
  for (std::size_t i = 0; i < std::min(left.size(), right.size()); ++i) {
    count += left[i] == right[i] ? 0 : 1;
  }
  return count;
}

/// The steps that are computed from the mixture do not depend on the seed.
bool same_exact_steps(const Forecast& a, const Forecast& b) {
  if (a.quantiles.size() != b.quantiles.size()) return false;
  for (std::size_t i = 0; i < a.quantiles.size(); ++i) {
    if (i % a.horizon < a.exact_steps && a.quantiles[i] != b.quantiles[i]) return false;
  }
  return true;
}

/// One check over all series; the first that differs is named.
Check same(std::string name, std::string measure, const std::vector<Forecast>& found,
           const std::vector<Forecast>& expected) {
  std::size_t total = found.size() == expected.size() && !found.empty() ? 0 : 1;
  std::string where;
  for (std::size_t i = 0; i < std::min(found.size(), expected.size()); ++i) {
    const std::size_t count = different_bytes(found[i], expected[i]);
    if (count > 0 && where.empty()) where = fmt::format("first in series '{}'", found[i].id);
    total += count;
  }
  return measured(std::move(name), std::move(measure), static_cast<double>(total), 0, "bytes",
                  where.empty()
                      ? fmt::format("{} series, parameters, statistics and {} trajectories",
                                    found.size(), kSamples)
                      : where);
}

std::string bits_of(Experiment& e, const Subject& subject) {
  const Model& model = e.model(subject);
  const Request r = request_for(e, patch_of(model));
  std::string bytes;
  for (const Forecast& f : Forecaster(model).forecast(r.series, r.options)) bytes += bytes_of(f);
  return bytes;
}

std::vector<Subject> all_subjects(const Experiment& e) {
  std::vector<Subject> subjects = e.subjects();
  subjects.insert(subjects.begin(), {Mode::eager, Precision::float32});
  return subjects;
}

}  // namespace

std::vector<Check> same_bits_again(Experiment& e, const Subject& subject) {
  const Model& model = e.model(subject);
  e.bits[subject.label()] = bits_of(e, subject);
  Request r = request_for(e, patch_of(model));
  Forecaster free(model);
  std::vector<Forecast> all(r.series.size());
  free.forecast(r.series, r.options, all);
  std::vector<Check> checks;
  checks.push_back(same("the same call again", "bytes that differ in a second call",
                        free.forecast(r.series, r.options), all));

  std::vector<Forecast> alone;
  for (const Series& s : r.series) {
    alone.push_back(std::move(free.forecast({&s, 1}, r.options).front()));
  }
  checks.push_back(
      same("alone or in a batch", "bytes that differ when a series is forecast alone", alone, all));

  std::vector<Series> reversed(r.series.rbegin(), r.series.rend());
  std::vector<Forecast> turned = free.forecast(reversed, r.options);
  std::reverse(turned.begin(), turned.end());
  checks.push_back(same("order", "bytes that differ in reversed order", turned, all));

  ForecasterOptions limited;
  {
    Forecaster whole(model);
    (void)whole.forecast(r.series, r.options);
    limited.memory_limit = std::max<std::uint64_t>(whole.counters().working_bytes / 3, 1);
  }
  Forecaster small(model, limited);
  const std::vector<Forecast> split = small.forecast(r.series, r.options);
  Check chunk =
      same("chunks", "bytes that differ when memory for a third splits the work", split, all);
  chunk.why += fmt::format("; split {} times", small.counters().splits);
  if (small.counters().splits == 0) {
    chunk.verdict = Verdict::could_not_run;
    chunk.why = "nothing was split";
  }
  checks.push_back(std::move(chunk));

  r.options.num_samples = kSamples * 2;
  std::vector<Forecast> more = free.forecast(r.series, r.options);
  std::size_t moved = 0;
  for (std::size_t i = 0; i < more.size(); ++i) {
    const std::size_t kept = all[i].samples.size();
    moved += more[i].samples.size() == 2 * kept &&
                     std::memcmp(more[i].samples.data(), all[i].samples.data(),
                                 kept * sizeof(float)) == 0
                 ? 0
                 : 1;
  }
  checks.push_back(measured("more samples", "series whose first trajectories change with more",
                            static_cast<double>(moved), 0, "series"));

  r.options.num_samples = kSamples;
  ++r.options.seed;
  const std::vector<Forecast> other = free.forecast(r.series, r.options);
  std::size_t equal = 0, count = 0, changed = 0;
  for (std::size_t i = 0; i < other.size(); ++i) {
    for (std::size_t j = 0; j < other[i].samples.size(); ++j, ++count) {
      equal += other[i].samples[j] == all[i].samples[j] ? 1 : 0;
    }
    changed += same_exact_steps(other[i], all[i]) ? 0 : 1;
  }
  checks.push_back(measured(
      "another seed", "draws that are equal under another seed",
      static_cast<double>(equal) / static_cast<double>(std::max<std::size_t>(count, 1)), 0.5,
      "of all", fmt::format("{} draws; exact statistics changed in {} series", count, changed)));
  if (changed > 0) checks.back().verdict = Verdict::fails;
  return checks;
}

std::vector<Check> same_bits_by_threads(Experiment& e, const Subject& subject) {
  const Model& model = e.model(subject);
  const Request r = request_for(e, patch_of(model));
  const std::vector<Forecast> all = Forecaster(model).forecast(r.series, r.options);
  std::vector<Check> checks;
  const std::vector<int> counts = e.quick() ? std::vector<int>{1} : std::vector<int>{1, 3};
  for (const int threads : counts) {
    const Model other = e.lab.load(subject, threads);
    checks.push_back(same(fmt::format("{} thread{}", threads, threads == 1 ? "" : "s"),
                          "bytes that differ from those of the threads in force",
                          Forecaster(other).forecast(r.series, r.options), all));
  }
  return checks;
}

std::vector<Check> draws_are_addressed(Experiment& e, const Subject& subject) {
  const Model& model = e.model(subject);
  const Request r = request_for(e, patch_of(model));
  const std::vector<Forecast> all = Forecaster(model).forecast(r.series, r.options);
  std::size_t wrong = 0, count = 0;
  std::string where;
  for (const Forecast& f : all) {
    const Parameters& p = f.parameters;
    const std::size_t k = p.components;
    const std::size_t cells = f.variates * f.horizon;
    for (std::size_t sample = 0; sample < f.num_samples; ++sample) {
      for (std::size_t cell = 0; cell < cells; ++cell) {
        const std::size_t step = cell % f.horizon;
        // Beyond the first patch the parameters that were kept are those of trajectory 0.
        if (step >= f.exact_steps && sample > 0) continue;
        const DrawAddress address{series_key(f.id), static_cast<std::uint32_t>(cell / f.horizon),
                                  static_cast<std::uint32_t>(sample),
                                  static_cast<std::uint32_t>(step)};
        const double* df = p.df.data() + cell * k;
        const double* loc = p.loc.data() + cell * k;
        const double* scale = p.scale.data() + cell * k;
        const double drawn = draw_mixture(df, loc, scale, p.probability.data() + cell * k, 1,
                                          static_cast<int>(k), draw_words(r.options.seed, address));
        const double y = p.affine_loc[cell] + p.affine_scale[cell] * drawn;
        const double found = static_cast<double>(f.samples[sample * cells + cell]);
        ++count;
        if (std::abs(found - y) <= 1e-5 * (std::abs(y) + std::abs(p.affine_scale[cell]))) continue;
        ++wrong;
        if (where.empty()) {
          where =
              fmt::format("first: series '{}', variate {}, sample {}, step {}: {} instead of {}",
                          f.id, address.variate, sample, step, found, y);
        }
      }
    }
  }
  return {measured(
      "draw addresses", "draws that are not those of (seed, series, variate, sample, step)",
      count == 0 ? std::nan("") : static_cast<double>(wrong), 0, "draws",
      where.empty() ? fmt::format("{} draws made again from the parameters", count) : where)};
}

std::string bits_of_all(Experiment& e) {
  std::string text;
  for (const Subject& subject : all_subjects(e)) {
    const std::string bytes = bits_of(e, subject);
    text += fmt::format("{}\n{}\n", subject.label(), bytes.size());
    text += bytes;
  }
  return text;
}

std::vector<Check> same_in_another_process(Experiment& e) {
  // label, newline, size, newline, that many bytes; and again
  std::map<std::string, std::string> other;
  const std::string& text = e.second_process();
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t first = text.find('\n', at);
    const std::size_t second = first == std::string::npos ? first : text.find('\n', first + 1);
    if (second == std::string::npos) break;
    const std::size_t size = std::stoull(text.substr(first + 1, second - first - 1));
    other[text.substr(at, first - at)] = text.substr(second + 1, size);
    at = second + 1 + size;
  }
  std::vector<Check> checks;
  for (const Subject& subject : all_subjects(e)) {
    const std::string label = subject.label();
    std::string& mine = e.bits[label];
    if (mine.empty()) mine = bits_of(e, subject);
    const std::string& its = other[label];
    std::size_t different =
        mine.size() > its.size() ? mine.size() - its.size() : its.size() - mine.size();
    for (std::size_t i = 0; i < std::min(mine.size(), its.size()); ++i) {
      different += mine[i] == its[i] ? 0 : 1;
    }
    Check c = measured(label, "bytes of parameters, statistics and trajectories that differ",
                       static_cast<double>(different), 0, "bytes",
                       fmt::format("{} bytes of each process, the same seed", mine.size()));
    if (its.empty() || mine.empty()) {
      c.verdict = Verdict::could_not_run;
      c.why = "the other process did not hand over this mode";
    }
    checks.push_back(std::move(c));
  }
  return checks;
}

}  // namespace toto::verify
