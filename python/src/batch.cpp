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
  std::size_t count = 0;
};

Covariates read_covariates(nb::handle given, std::size_t steps, std::size_t horizon,
                           data::Missing missing, const std::string& where) {
  const FloatArray array = float_array(given, 2, where);
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
  out.known.assign(array.data, array.data + array.size());
  out.observed.assign(out.known.size(), 1);
  for (std::size_t e = 0; e < out.count; ++e) {
    fill(std::span(out.known).subspan(e * all, all), std::span(out.observed).subspan(e * all, all),
         missing, where);
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
  if (extras.context == 0) {
    refuse("invalid_context", "expected a context of at least 1 step, found 0", "context");
  }
  if (is_array(inputs)) {
    FloatArray values = float_array(inputs, 3, "inputs");
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
    FloatArray values = float_array(one, 2, fmt::format("inputs[{}]", i));
    owners_.push_back(values.owner);
    add(values, values.rank, 0, i, extras, model, horizon);
  }
}

void Batch::add(const FloatArray& array, std::size_t rank, std::size_t offset, std::size_t index,
                const SeriesExtras& extras, const ModelInfo& model, std::size_t horizon) {
  const bool single = rank_ < 3;
  const auto where = [&](const char* name) {
    return single ? std::string(name) : fmt::format("{}[{}]", name, index);
  };
  const std::size_t variates = rank == 2 ? array.shape[0] : 1;
  const std::size_t all = rank == 2 ? array.shape[1] : array.shape[0];
  const std::size_t steps = std::min(all, extras.context);
  const std::size_t cells = variates * all;
  univariate_ = univariate_ && rank == 1;
  std::span<const float> values(array.data + offset, cells);

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
  if (has_nan(values)) {
    std::vector<float>& filled = floats_.emplace_back(values.begin(), values.end());
    std::vector<std::uint8_t>& marked = masks_.emplace_back(cells, std::uint8_t{1});
    if (!mask.empty()) std::ranges::copy(mask, marked.begin());
    for (std::size_t v = 0; v < variates; ++v) {
      fill(std::span(filled).subspan(v * all, all), std::span(marked).subspan(v * all, all),
           extras.missing, where("inputs"));
    }
    values = filled;
    mask = marked;
  }

  Series series;
  series.id = ids_.back();
  series.variates = variates;
  series.steps = steps;
  series.exogenous = extras.exogenous;
  targets_.push_back(variates);

  const nb::object known = element(extras.covariates, index, count_, single, "covariates");
  if (!known.is_none()) {
    const Covariates given =
        read_covariates(known, all, horizon, extras.missing, where("covariates"));
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
    // Toto 1.0 sees a covariate one patch before its time, Toto 2.0 at its time.
    const auto patch = static_cast<std::size_t>(model.patch_size);
    data::ShiftedCovariates shifted =
        data::shift_covariates(ahead, ahead_observed, given.count, steps, horizon,
                               model.architecture == "toto-1.0" ? patch : 0);
    joined.insert(joined.end(), shifted.context.begin(), shifted.context.end());
    observed.insert(observed.end(), shifted.mask.begin(), shifted.mask.end());
    series.variates += given.count;
    series.exogenous = given.count;
    series.values = joined;
    series.mask = observed;
    series.future_exogenous = floats_.emplace_back(std::move(shifted.future));
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
