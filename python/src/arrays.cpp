// SPDX-License-Identifier: Apache-2.0
#include "arrays.h"

#include <fmt/format.h>

#include "errors.h"

namespace nb = nanobind;

namespace toto::python {
namespace {

template <typename T>
using View = nb::ndarray<const T, nb::c_contig, nb::device::cpu>;

void point_to(FloatArray& out, const float* data) { out.data = data; }
void point_to(FloatArray& out, const double* data) { out.wide = data; }

template <typename T>
FloatArray fields_of(const View<T>& view, nb::object owner) {
  FloatArray out;
  out.owner = std::move(owner);
  point_to(out, view.data());
  out.rank = view.ndim();
  for (std::size_t i = 0; i < out.rank; ++i) out.shape[i] = view.shape(i);
  return out;
}

// numpy.asarray and what stands around it (toto_cpp/_arrays.py).
nb::object converted(const char* function, nb::handle given, const std::string& where) {
  return nb::module_::import_("toto_cpp._arrays").attr(function)(given, where.c_str());
}

void check_rank(std::size_t rank, std::size_t max_rank, const std::string& where) {
  if (rank >= 1 && rank <= max_rank) return;
  refuse("invalid_input",
         fmt::format("expected an array of 1 to {} axes, found {}", max_rank, rank), where,
         "[T] is one series, [V, T] one of V variates, [N, V, T] a batch");
}

/// `given` where it is an array of this type in C order.
template <typename T>
bool as_it_lies(nb::handle given, std::size_t max_rank, const std::string& where, FloatArray& out) {
  View<T> view;
  if (!nb::try_cast(given, view, false)) return false;
  check_rank(view.ndim(), max_rank, where);
  out = fields_of(view, nb::make_tuple(nb::borrow(given), view));
  return true;
}

}  // namespace

FloatArray float_array(nb::handle given, std::size_t max_rank, const std::string& where,
                       Digits digits) {
  FloatArray out;
  // A list of numbers is no array, and asking for one would be slow.
  const bool is_list = PyList_Check(given.ptr()) != 0;
  if (!is_list && as_it_lies<float>(given, max_rank, where, out)) return out;
  const bool all = digits == Digits::all;
  if (!is_list && all && as_it_lies<double>(given, max_rank, where, out)) return out;
  const nb::object owner = converted(all ? "floats" : "float32", given, where);
  if (as_it_lies<float>(owner, max_rank, where, out)) return out;
  const auto view = nb::cast<View<double>>(owner);
  check_rank(view.ndim(), max_rank, where);
  return fields_of(view, nb::make_tuple(owner, view));
}

MaskArray mask_array(nb::handle given, std::size_t size, const std::string& where) {
  const nb::object owner = converted("mask", given, where);
  const auto view = nb::cast<View<std::uint8_t>>(owner);
  if (view.size() != size) {
    refuse("invalid_input",
           fmt::format("expected a mask of {} elements, found {}", size, view.size()), where,
           "give one element for each value: 1 (or True) where it was observed");
  }
  return {owner, {view.data(), view.size()}};
}

GroupArray group_array(nb::handle given, const std::string& where) {
  const nb::object owner = converted("int32", given, where);
  const auto view = nb::cast<View<std::int32_t>>(owner);
  return {owner, {view.data(), view.size()}};
}

bool is_array(nb::handle given) {
  PyObject* const object = given.ptr();
  if (PyList_Check(object) || PyTuple_Check(object)) {
    if (PySequence_Size(object) <= 0) return false;
    const nb::object first = nb::steal(PySequence_GetItem(object, 0));
    if (first.is_none()) return true;  // a value that is missing
    return PyNumber_Check(first.ptr()) != 0 && PySequence_Check(first.ptr()) == 0;
  }
  return true;
}

}  // namespace toto::python
