// SPDX-License-Identifier: Apache-2.0
#include "errors.h"

namespace nb = nanobind;

namespace toto::python {

nb::object exception_of(const Error& error) {
  return nb::module_::import_("toto_cpp._errors")
      .attr("make")(static_cast<int>(error.status()), error.code().c_str(),
                    error.message().c_str(), error.where().c_str(), error.remedy().c_str(),
                    error.what());
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

void refuse(std::string_view code, const std::string& message, std::string_view where,
            std::string_view remedy) {
  throw Error(ExitStatus::usage, code, message, where, remedy);
}

}  // namespace toto::python
