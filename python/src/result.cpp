// SPDX-License-Identifier: Apache-2.0
#include "result.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <initializer_list>
#include <span>
#include <utility>

#include "toto/tools/data.hpp"

namespace nb = nanobind;

namespace toto::python {
namespace {

/// `planes` of [V][H] of one series into planes of [R][H], the first `rows` variates, from row
/// `first` on. Where that is all of it, the memory itself.
void place(std::vector<float>& from, std::vector<float>& to, std::size_t planes,
           std::size_t variates, std::size_t rows, std::size_t first, std::size_t all,
           std::size_t horizon) {
  if (from.empty() || planes == 0) return;
  if (rows == variates && rows == all) {
    to = std::move(from);
    return;
  }
  to.resize(planes * all * horizon);
  for (std::size_t p = 0; p < planes; ++p) {
    std::copy_n(from.data() + p * variates * horizon, rows * horizon,
                to.data() + (p * all + first) * horizon);
  }
  from = {};
}

/// A view of a vector that keeps its owner alive; None where it is empty.
template <typename T>
nb::object view_of(nb::handle owner, std::vector<T>& data,
                   std::initializer_list<std::size_t> shape) {
  if (data.empty()) return nb::none();
  return nb::cast(nb::ndarray<nb::numpy, T>(data.data(), shape.size(), shape.begin(), owner));
}

nb::object view_of(nb::handle owner, Numbers& data, std::initializer_list<std::size_t> shape) {
  return data.wide.empty() ? view_of(owner, data.narrow, shape) : view_of(owner, data.wide, shape);
}

Result& of(nb::handle self) { return *nb::inst_ptr<Result>(self); }

nb::object parameters_of(const nb::object& self, std::size_t index) {
  Result& result = of(self);
  if (index >= result.parameters.size()) return nb::none();
  Parameters& p = result.parameters[index];
  const std::size_t k = p.components;
  const std::size_t h = result.horizon();
  const std::size_t v = p.affine_loc.size() / h;
  nb::dict out;
  out["df"] = view_of(self, p.df, {v, h, k});
  out["loc"] = view_of(self, p.loc, {v, h, k});
  out["scale"] = view_of(self, p.scale, {v, h, k});
  out["probability"] = view_of(self, p.probability, {v, h, k});
  out["affine_loc"] = view_of(self, p.affine_loc, {v, h});
  out["affine_scale"] = view_of(self, p.affine_scale, {v, h});
  return out;
}

}  // namespace

Result::Result(std::vector<Forecast>&& forecasts, std::vector<std::string> ids,
               std::vector<std::size_t> targets, std::size_t rank, bool univariate)
    : ids_(std::move(ids)), rank_(rank), univariate_(univariate) {
  offsets_.push_back(0);
  for (const std::size_t t : targets) offsets_.push_back(offsets_.back() + t);
  value_offsets_.resize(rows(), 0.0);
  for (std::size_t i = 0; i < forecasts.size(); ++i) take(forecasts[i], i);
  if (std::ranges::all_of(value_offsets_, [](double x) { return x == 0; })) return;
  for (Numbers* const numbers : {&mean, &median, &quantiles, &samples}) add_offsets(*numbers);
}

void Result::add_offsets(Numbers& numbers) const {
  numbers.wide.resize(numbers.narrow.size());
  for (std::size_t i = 0; i < numbers.wide.size(); ++i) {
    const double offset = value_offsets_[i / horizon_ % rows()];
    numbers.wide[i] = data::with_offset(offset, numbers.narrow[i]);
  }
  numbers.narrow = {};
}

void Result::take(Forecast& f, std::size_t index) {
  if (index == 0) {
    horizon_ = f.horizon;
    levels_ = f.levels;
    num_samples_ = f.num_samples;
  }
  exact_steps_.push_back(f.exact_steps);
  const std::size_t first = offsets_[index];
  const std::size_t own = offsets_[index + 1] - first;
  const auto put = [&](std::vector<float>& from, std::vector<float>& to) {
    const std::size_t plane = f.variates * f.horizon;
    place(from, to, plane == 0 ? 0 : from.size() / plane, f.variates, own, first, rows(),
          f.horizon);
  };
  put(f.mean, mean.narrow);
  put(f.median, median.narrow);
  put(f.std, std);
  put(f.quantiles, quantiles.narrow);
  put(f.samples, samples.narrow);
  for (std::size_t v = 0; v < own && v < f.applied.value_offset.size(); ++v) {
    value_offsets_[first + v] = f.applied.value_offset[v];
    const auto loc = std::span(f.parameters.affine_loc);
    for (std::size_t t = 0; t < f.horizon && !loc.empty(); ++t) {
      loc[v * f.horizon + t] += f.applied.value_offset[v];
    }
  }
  if (f.parameters.components > 0) parameters.push_back(std::move(f.parameters));
}

void bind_result(nb::module_& module) {
  nb::class_<Result>(module, "Result", "The forecasts of one call: R rows, a row for each variate.")
      .def_prop_ro("count", &Result::count)
      .def_prop_ro("rank", &Result::rank)
      .def_prop_ro("univariate", &Result::univariate)
      .def_prop_ro("horizon", &Result::horizon)
      .def_prop_ro("num_samples", &Result::num_samples)
      .def_prop_ro("ids", &Result::ids)
      .def_prop_ro("offsets", &Result::offsets)
      .def_prop_ro("exact_steps", &Result::exact_steps)
      .def_prop_ro("levels", &Result::levels)
      .def_prop_ro(
          "mean",
          [](nb::handle self) {
            return view_of(self, of(self).mean, {of(self).rows(), of(self).horizon()});
          },
          "[R][H] float32, or float64 with an offset")
      .def_prop_ro(
          "median",
          [](nb::handle self) {
            return view_of(self, of(self).median, {of(self).rows(), of(self).horizon()});
          },
          "[R][H] float32, or float64 with an offset; None in mean mode")
      .def_prop_ro(
          "std",
          [](nb::handle self) {
            return view_of(self, of(self).std, {of(self).rows(), of(self).horizon()});
          },
          "[R][H] float32, or None in mean mode")
      .def_prop_ro(
          "quantiles",
          [](nb::handle self) {
            Result& r = of(self);
            return view_of(self, r.quantiles, {r.levels().size(), r.rows(), r.horizon()});
          },
          "[L][R][H] as the mean, or None in mean mode")
      .def_prop_ro(
          "samples",
          [](nb::handle self) {
            Result& r = of(self);
            const std::size_t plane = r.rows() * r.horizon();
            return view_of(self, r.samples,
                           {plane == 0 ? 0 : r.samples.size() / plane, r.rows(), r.horizon()});
          },
          "[S][R][H] as the mean, or None where they were not asked for")
      .def("parameters", &parameters_of, nb::arg("index"),
           "The mixture of series `index` before anything is drawn, or None.");
}

}  // namespace toto::python
