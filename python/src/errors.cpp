// SPDX-License-Identifier: Apache-2.0
#include "errors.h"

namespace nb = nanobind;

namespace toto::python {

nb::object exception_of(const Error& error) {
  return nb::module_::import_("toto_cpp._errors")
      .attr("make")(static_cast<int>(error.status()), error.code().c_str(), error.message().c_str(),
                    error.where().c_str(), error.remedy().c_str(), error.what());
}

void translate_errors() {
  nb::register_exception_translator([](const std::exception_ptr& thrown, void*) {
    try {
      std::rethrow_exception(thrown);
    } catch (const Error& error) {
      try {
        const nb::object exception = exception_of(error);
        PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(exception.ptr())), exception.ptr());
      } catch (nb::python_error& second) {
        second.restore();
      }
    }
  });
}

std::string text_of(nb::handle given) {
  const nb::object text = nb::steal(PyObject_Str(given.ptr()));
  if (!text.is_valid()) nb::raise_python_error();
  Py_ssize_t size = 0;
  const char* const bytes = PyUnicode_AsUTF8AndSize(text.ptr(), &size);
  if (bytes == nullptr) nb::raise_python_error();
  return {bytes, static_cast<std::size_t>(size)};
}

void refuse(std::string_view code, const std::string& message, std::string_view where,
            std::string_view remedy) {
  throw Error(ExitStatus::usage, code, message, where, remedy);
}

}  // namespace toto::python
