// SPDX-License-Identifier: Apache-2.0
#include "lists.h"

#include <fmt/format.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>

#include "errors.h"
#include "missing.h"
#include "model.h"
#include "toto/tools/data.hpp"
#include "watched.h"

namespace nb = nanobind;
using namespace nb::literals;  // NOLINT(google-build-using-namespace): "name"_a

namespace toto::python {
namespace {

template <typename T>
using Column = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <typename T>
using Planes = nb::ndarray<T, nb::ndim<3>, nb::c_contig, nb::device::cpu>;

template <typename T>
std::span<const T> span_of(const Column<T>& column) {
  return {column.data(), column.shape(0)};
}

[[noreturn]] void malformed(const char* what) {
  refuse("invalid_input", fmt::format("{} do not fit together", what), "forecast_lists");
}

/// Text of column `names`: a list of str, or (ends [N + 1], bytes) as a column of Arrow has it.
/// With the GIL.
void read_names(nb::handle names, Lists& lists, std::vector<nb::object>& owners) {
  const std::size_t count = lists.begins.size();
  lists.names.reserve(lists.rows.size());
  if (PyList_Check(names.ptr()) != 0) {
    if (static_cast<std::size_t>(PyList_Size(names.ptr())) != count) malformed("names and values");
    owners.push_back(nb::borrow(names));
    for (const std::int64_t row : lists.rows) {
      Py_ssize_t size = 0;
      const char* const text = PyUnicode_AsUTF8AndSize(PyList_GetItem(names.ptr(), row), &size);
      if (text == nullptr) nb::raise_python_error();
      lists.names.emplace_back(text, static_cast<std::size_t>(size));
    }
    return;
  }
  const auto both = nb::cast<nb::tuple>(names);
  const auto ends = nb::cast<Column<std::int64_t>>(both[0]);
  const auto bytes = nb::cast<Column<std::uint8_t>>(both[1]);
  owners.push_back(nb::make_tuple(both, ends, bytes));
  if (ends.shape(0) != count + 1) malformed("names and values");
  const auto* const text = reinterpret_cast<const char*>(bytes.data());
  const auto all = static_cast<std::int64_t>(bytes.shape(0));
  for (const std::int64_t row : lists.rows) {
    const std::int64_t begin = ends.data()[row];
    const std::int64_t end = ends.data()[row + 1];
    if (begin < 0 || end < begin || end > all) malformed("ends and bytes of names");
    lists.names.emplace_back(text + begin, static_cast<std::size_t>(end - begin));
  }
}

/// Everything that one call needs, wherever it is computed.
class Call {
 public:
  Call(std::shared_ptr<ModelHandle::Loaded> model, const nb::object& values,
       const Column<std::int64_t>& begins, const Column<std::int64_t>& lengths,
       const nb::object& names, const Column<std::int64_t>& rows, const Options& options,
       const nb::object& out, nb::object progress)
      : loaded_(std::move(model)), options_(options), watcher_(std::move(progress)) {
    owners_ = {nb::make_tuple(values, begins, lengths, rows, out)};
    lists_.begins = span_of(begins);
    lists_.lengths = span_of(lengths);
    lists_.rows = span_of(rows);
    check_rows(read_values(values));
    read_names(names, lists_, owners_);
    read_out(out);
    ForecastOptions& own = options_.forecast;
    own.select = {.mean = false, .median = false, .std = false};
    own.keep_samples = own.keep_parameters = false;
    own.progress = [this](std::size_t done, std::size_t total) {
      return !stopped && watcher_(done, total);
    };
  }

  /// Without the GIL.
  void compute() {
    const ListBatch batch(lists_, options_);
    const std::size_t levels = options_.forecast.levels.size();
    const std::size_t horizon = options_.forecast.horizon;
    std::vector<float> found(batch.series().size() * levels * horizon);
    {
      std::unique_lock lock(loaded_->turn, std::defer_lock);
      wait_for_turn(lock, options_.forecast.progress);
      loaded_->forecaster.forecast(batch.series(), options_.forecast, found);
    }
    for (std::size_t i = 0; i < batch.series().size(); ++i) {
      const auto row = static_cast<std::size_t>(lists_.rows[i]);
      for (std::size_t level = 0; level < levels; ++level) {
        const float* const from = found.data() + (i * levels + level) * horizon;
        const std::size_t to = (level * lists_.begins.size() + row) * horizon;
        if (narrow_ != nullptr) {
          std::copy_n(from, horizon, narrow_ + to);
        } else {
          for (std::size_t t = 0; t < horizon; ++t) {
            wide_[to + t] = data::with_offset(batch.offset(i), from[t]);
          }
        }
      }
    }
  }

  [[nodiscard]] bool takes_long() const {
    double steps = 0;
    for (const std::int64_t row : lists_.rows) {
      const auto length = static_cast<std::size_t>(lists_.lengths[static_cast<std::size_t>(row)]);
      steps += static_cast<double>(std::min(length, options_.context));
    }
    return python::takes_long(steps, lists_.rows.size(), options_.forecast, loaded_->model.info());
  }

  void rethrow() { watcher_.rethrow(); }

  std::atomic<bool> stopped = false;

 private:
  std::int64_t read_values(const nb::object& values) {
    if (Column<float> narrow; nb::try_cast(values, narrow, false)) {
      lists_.narrow = span_of(narrow);
      return static_cast<std::int64_t>(narrow.shape(0));
    }
    const auto wide = nb::cast<Column<double>>(values, false);
    lists_.wide = span_of(wide);
    return static_cast<std::int64_t>(wide.shape(0));
  }

  void check_rows(std::int64_t values) const {
    const auto count = static_cast<std::int64_t>(lists_.begins.size());
    if (lists_.lengths.size() != lists_.begins.size()) malformed("begins and lengths");
    for (const std::int64_t row : lists_.rows) {
      if (row < 0 || row >= count) malformed("rows and series");
      const std::int64_t begin = lists_.begins[static_cast<std::size_t>(row)];
      const std::int64_t length = lists_.lengths[static_cast<std::size_t>(row)];
      if (begin < 0 || length < 0 || begin > values || length > values - begin) {
        malformed("lists and values");
      }
    }
  }

  /// [levels][N][horizon]
  void read_out(const nb::object& out) {
    const auto fits = [&](const auto& planes) {
      return planes.shape(0) == options_.forecast.levels.size() &&
             planes.shape(1) == lists_.begins.size() &&
             planes.shape(2) == options_.forecast.horizon;
    };
    bool whole = false;
    if (Planes<float> narrow; nb::try_cast(out, narrow, false)) {
      narrow_ = narrow.data();
      whole = fits(narrow) && lists_.wide.empty();
    } else {
      const auto wide = nb::cast<Planes<double>>(out, false);
      wide_ = wide.data();
      whole = fits(wide);
    }
    if (!whole) malformed("values and results");
  }

  std::shared_ptr<ModelHandle::Loaded> loaded_;
  std::vector<nb::object> owners_;
  Lists lists_;
  Options options_;
  Watcher watcher_;
  float* narrow_ = nullptr;  // where results go: here
  double* wide_ = nullptr;   // or here
};

void forecast_lists(ModelHandle& handle, const nb::object& values,
                    const Column<std::int64_t>& begins, const Column<std::int64_t>& lengths,
                    const nb::object& names, const Column<std::int64_t>& rows,
                    const Options& options, const nb::object& out, nb::object progress,
                    bool watched) {
  if (options.forecast.mean_only) {
    refuse("not_kept", "this forecast has no quantiles", "quantiles",
           "samples=True keeps trajectories; mean_only=True computes the mean alone");
  }
  check_context(options.context);
  const auto call = std::make_shared<Call>(handle.loaded(), values, begins, lengths, names, rows,
                                           options, out, std::move(progress));
  try {
    if (watched && call->takes_long()) {
      run_watched([call] { call->compute(); }, [&call] { call->stopped = true; });
    } else {
      const nb::gil_scoped_release free;
      call->compute();
    }
  } catch (const Error&) {
    call->rethrow();
    throw;
  }
}

}  // namespace

ListBatch::ListBatch(const Lists& lists, const Options& options) {
  series_.reserve(lists.rows.size());
  for (std::size_t i = 0; i < lists.rows.size(); ++i) add(lists, i, options);
}

/// As Batch::add has it for one variate alone.
void ListBatch::add(const Lists& lists, std::size_t index, const Options& options) {
  const auto row = static_cast<std::size_t>(lists.rows[index]);
  const auto begin = static_cast<std::size_t>(lists.begins[row]);
  const auto all = static_cast<std::size_t>(lists.lengths[row]);
  const auto where = [&] { return fmt::format("inputs[{}]", index); };
  Series series;
  series.id = lists.names[index];
  std::span<const float> values;
  if (lists.wide.empty()) {
    values = lists.narrow.subspan(begin, all);
  } else {
    const std::span<const double> wide = lists.wide.subspan(begin, all);
    std::vector<float>& own = floats_.emplace_back(all);
    if (options.value_offset) {
      const double offset = data::keep_digits(wide, {}, own);
      if (offset != 0) series.value_offsets = {&offsets_.emplace_back(offset), 1};
    } else {
      std::ranges::transform(wide, own.begin(), [](double x) { return static_cast<float>(x); });
    }
    values = own;
  }
  std::span<const std::uint8_t> mask;
  if (has_nan(values)) {
    if (lists.wide.empty()) floats_.emplace_back(values.begin(), values.end());
    std::vector<std::uint8_t>& marked = masks_.emplace_back(all, std::uint8_t{1});
    fill(floats_.back(), marked, options.missing, options.season,
         series.value_offsets.empty() ? 0.0 : series.value_offsets[0], where());
    values = floats_.back();
    mask = marked;
  }
  const std::size_t beyond = options.forecast.across_missing ? missing_end(mask, 1, all) : 0;
  series.steps = all - beyond > options.context ? options.context + beyond : all;
  series.values = values.last(series.steps);
  if (!mask.empty()) series.mask = mask.last(series.steps);
  series_.push_back(series);
}

void bind_lists(nb::class_<ModelHandle>& model) {
  model.def(
      "forecast_lists", &forecast_lists, "values"_a, "begins"_a, "lengths"_a, "names"_a, "rows"_a,
      "options"_a, "out"_a, "progress"_a.none(), "watched"_a,
      "Quantiles of the series `rows` of many that lie in one array, into out[levels][N][horizon]. "
      "watched: look for Ctrl-C meanwhile, as the main thread must.");
}

}  // namespace toto::python
