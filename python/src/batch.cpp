// SPDX-License-Identifier: Apache-2.0
#include "batch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "errors.h"
#include "missing.h"

namespace nb = nanobind;

namespace toto::python {
namespace {

/// What belongs to series `index` of `count`: `given` itself for a single series, else its element.
nb::object element(const nb::object& given, std::size_t index, std::size_t count, bool single,
                   const char* name) {
  if (given.is_none()) return nb::none();
  if (single) return given;
  const Py_ssize_t size = PyObject_Size(given.ptr());
  if (size < 0) nb::raise_python_error();
  if (static_cast<std::size_t>(size) != count) {
    refuse("invalid_input",
           fmt::format("expected one for each of {} series, found {}", count, size), name,
           "give a list with one element for each series");
  }
  return nb::steal(PySequence_GetItem(given.ptr(), static_cast<Py_ssize_t>(index)));
}

/// [E][steps + horizon] to the last variates of a series, as the command line makes them.
struct Covariates {
  std::vector<float> known;
  std::vector<std::uint8_t> observed;
  std::vector<double> offsets;
  std::size_t count = 0;
};

Covariates read_covariates(nb::handle given, std::size_t steps, std::size_t horizon,
                           const SeriesExtras& extras, const std::string& where) {
  const FloatArray array = float_array(given, 2, where, extras.digits);
  Covariates out;
  out.count = array.rank == 2 ? array.shape[0] : 1;
  const std::size_t all = array.shape[array.rank - 1];
  if (all != steps + horizon) {
    refuse("invalid_covariates",
           fmt::format("expected {} values of each covariate ({} steps and the horizon of {}), "
                       "found {}",
                       steps + horizon, steps, horizon, all),
           where, "give covariates for the past and for the horizon");
  }
  out.known.resize(array.size());
  out.observed.assign(out.known.size(), 1);
  out.offsets.resize(out.count);
  if (array.data != nullptr) std::copy_n(array.data, array.size(), out.known.begin());
  for (std::size_t e = 0; e < out.count; ++e) {
    const auto row = std::span(out.known).subspan(e * all, all);
    if (array.wide != nullptr) {
      out.offsets[e] = data::keep_digits({array.wide + e * all, all}, {}, row);
    }
    fill(row, std::span(out.observed).subspan(e * all, all), extras.missing, extras.season,
         out.offsets[e], where);
  }
  return out;
}

/// The last `kept` of `all` columns of each row.
template <typename T>
void append_last(std::vector<T>& to, const T* from, std::size_t rows, std::size_t all,
                 std::size_t kept) {
  for (std::size_t r = 0; r < rows; ++r) {
    const T* const end = from + (r + 1) * all;
    to.insert(to.end(), end - kept, end);
  }
}

}  // namespace

Batch::Batch(nb::handle inputs, const SeriesExtras& extras, const ModelInfo& model,
             std::size_t horizon) {
  check_context(extras.context);
  if (is_array(inputs)) {
    FloatArray values = float_array(inputs, 3, "inputs", extras.digits);
    owners_.push_back(values.owner);
    rank_ = values.rank;
    if (rank_ < 3) {
      add(values, rank_, 0, 0, extras, model, horizon);
      return;
    }
    count_ = values.shape[0];
    FloatArray one = values;
    one.rank = 2;
    one.shape[0] = values.shape[1];
    one.shape[1] = values.shape[2];
    series_.reserve(count_);
    for (std::size_t i = 0; i < count_; ++i) add(one, 2, i * one.size(), i, extras, model, horizon);
    return;
  }
  rank_ = 3;
  const nb::object list = nb::steal(PySequence_List(inputs.ptr()));
  if (!list.is_valid()) nb::raise_python_error();
  count_ = static_cast<std::size_t>(PyList_Size(list.ptr()));
  series_.reserve(count_);
  for (std::size_t i = 0; i < count_; ++i) {
    const nb::handle one = PyList_GetItem(list.ptr(), static_cast<Py_ssize_t>(i));
    FloatArray values = float_array(one, 2, fmt::format("inputs[{}]", i), extras.digits);
    owners_.push_back(values.owner);
    add(values, values.rank, 0, i, extras, model, horizon);
  }
}

/// Values of a series as float32, with their offsets. The last `exogenous` variates have none: what
/// is known ahead of them comes apart.
std::span<const float> Batch::narrow(std::span<const double> values,
                                     std::span<const std::uint8_t> mask, std::size_t variates,
                                     std::size_t exogenous, Series& series) {
  std::vector<float>& out = floats_.emplace_back(values.size());
  std::vector<double> offsets(variates);
  const std::size_t all = variates == 0 ? 0 : values.size() / variates;
  const std::size_t targets = variates - std::min(variates, exogenous);
  for (std::size_t v = 0; v < targets; ++v) {
    const std::size_t begin = v * all;
    offsets[v] = data::keep_digits(values.subspan(begin, all),
                                   mask.empty() ? mask : mask.subspan(begin, all),
                                   std::span(out).subspan(begin, all));
  }
  for (std::size_t i = targets * all; i < out.size(); ++i) out[i] = static_cast<float>(values[i]);
  if (std::ranges::any_of(offsets, [](double x) { return x != 0; })) {
    series.value_offsets = offsets_.emplace_back(std::move(offsets));
  }
  return out;
}

void Batch::add(const FloatArray& array, std::size_t rank, std::size_t offset, std::size_t index,
                const SeriesExtras& extras, const ModelInfo& model, std::size_t horizon) {
  const bool single = rank_ < 3;
  const auto where = [&](const char* name) {
    return single ? std::string(name) : fmt::format("{}[{}]", name, index);
  };
  const std::size_t variates = rank == 2 ? array.shape[0] : 1;
  const std::size_t all = rank == 2 ? array.shape[1] : array.shape[0];
  const std::size_t cells = variates * all;
  univariate_ = univariate_ && rank == 1;
  Series series;

  nb::object id = element(extras.ids, index, count_, single, "ids");
  if (single && PyList_Check(id.ptr()) && PyList_Size(id.ptr()) == 1) id = id[0];
  ids_.push_back(id.is_none() ? std::to_string(index) : text_of(id));

  std::span<const std::uint8_t> mask;
  const nb::object given_mask = element(extras.mask, index, count_, single, "mask");
  if (!given_mask.is_none()) {
    MaskArray own = mask_array(given_mask, cells, where("mask"));
    owners_.push_back(std::move(own.owner));
    mask = own.values;
  }
  std::span<const float> values;
  if (array.wide != nullptr) {
    values = narrow({array.wide + offset, cells}, mask, variates, extras.exogenous, series);
  } else {
    values = {array.data + offset, cells};
  }
  const std::span<const double> offsets = series.value_offsets;
  if (has_nan(values)) {
    std::vector<float>& filled = floats_.emplace_back(values.begin(), values.end());
    std::vector<std::uint8_t>& marked = masks_.emplace_back(cells, std::uint8_t{1});
    if (!mask.empty()) std::ranges::copy(mask, marked.begin());
    for (std::size_t v = 0; v < variates; ++v) {
      fill(std::span(filled).subspan(v * all, all), std::span(marked).subspan(v * all, all),
           extras.missing, extras.season, offsets.empty() ? 0.0 : offsets[v], where("inputs"));
    }
    values = filled;
    mask = marked;
  }
  // As the command line counts it: up to the last observation, and what comes after it.
  const std::size_t beyond =
      extras.across_missing
          ? missing_end(mask, variates - std::min(variates, extras.exogenous), all)
          : 0;
  const std::size_t steps = all - beyond > extras.context ? extras.context + beyond : all;

  series.id = ids_.back();
  series.variates = variates;
  series.steps = steps;
  series.exogenous = extras.exogenous;
  targets_.push_back(variates);

  const nb::object known = element(extras.covariates, index, count_, single, "covariates");
  if (!known.is_none()) {
    const Covariates given = read_covariates(known, all, horizon, extras, where("covariates"));
    if (!offsets.empty() || std::ranges::any_of(given.offsets, [](double x) { return x != 0; })) {
      std::vector<double>& both = offsets_.emplace_back(offsets.begin(), offsets.end());
      both.resize(variates, 0.0);
      both.insert(both.end(), given.offsets.begin(), given.offsets.end());
      series.value_offsets = both;
    }
    std::vector<float>& joined = floats_.emplace_back();
    std::vector<std::uint8_t>& observed = masks_.emplace_back();
    append_last(joined, values.data(), variates, all, steps);
    if (mask.empty()) {
      observed.assign(variates * steps, 1);
    } else {
      append_last(observed, mask.data(), variates, all, steps);
    }
    std::vector<float> ahead;
    std::vector<std::uint8_t> ahead_observed;
    append_last(ahead, given.known.data(), given.count, all + horizon, steps + horizon);
    append_last(ahead_observed, given.observed.data(), given.count, all + horizon, steps + horizon);
    const bool regressed = regresses(extras.covariates_by, model);
    const auto lead = static_cast<std::size_t>(regressed ? 0 : model.covariate_lead);
    data::ShiftedCovariates shifted =
        data::shift_covariates(ahead, ahead_observed, given.count, steps, horizon, lead);
    joined.insert(joined.end(), shifted.context.begin(), shifted.context.end());
    observed.insert(observed.end(), shifted.mask.begin(), shifted.mask.end());
    if (regressed) {
      data::TimeSeries both;
      both.id = ids_.back();
      both.variates.resize(variates + given.count);
      both.covariates = given.count;
      both.steps = steps;
      both.values = std::move(joined);
      both.value_offsets.assign(series.value_offsets.begin(), series.value_offsets.end());
      both.mask = std::move(observed);
      both.future_covariates = std::move(shifted.future);
      effects_.add(index, std::move(both));
    } else {
      series.variates += given.count;
      series.exogenous = given.count;
      series.values = joined;
      series.mask = observed;
      series.future_exogenous = floats_.emplace_back(std::move(shifted.future));
    }
  } else if (steps == all || variates == 1) {
    series.values = values.last(variates * steps);
    if (!mask.empty()) series.mask = mask.last(variates * steps);
  } else {
    std::vector<float>& cut = floats_.emplace_back();
    append_last(cut, values.data(), variates, all, steps);
    series.values = cut;
    if (!mask.empty()) {
      std::vector<std::uint8_t>& cut_mask = masks_.emplace_back();
      append_last(cut_mask, mask.data(), variates, all, steps);
      series.mask = cut_mask;
    }
  }

  const nb::object future =
      element(extras.exogenous_futures, index, count_, single, "future_exogenous");
  if (!future.is_none()) {
    const FloatArray own = float_array(future, 2, where("future_exogenous"));
    owners_.push_back(own.owner);
    series.future_exogenous = {own.data, own.size()};
  }
  const nb::object future_mask = element(extras.future_mask, index, count_, single, "future_mask");
  if (!future_mask.is_none()) {
    MaskArray own = mask_array(future_mask, series.future_exogenous.size(), where("future_mask"));
    owners_.push_back(std::move(own.owner));
    series.future_mask = own.values;
  }
  const nb::object groups = element(extras.groups, index, count_, single, "groups");
  if (!groups.is_none()) {
    GroupArray own = group_array(groups, where("groups"));
    owners_.push_back(std::move(own.owner));
    series.groups = own.values;
    if (own.values.size() == cells && steps != all) {
      std::vector<std::int32_t>& cut = groups_.emplace_back();
      append_last(cut, own.values.data(), variates, all, steps);
      series.groups = cut;
    }
  }
  series_.push_back(series);
}

}  // namespace toto::python
