// SPDX-License-Identifier: Apache-2.0
// The program `toto` as a function. The Python package has it in its library, beside what its
// module calls, so that the kernels are there once.
#pragma once

/// What main() is given, and returns: an exit status. One call in a process.
extern "C" [[gnu::visibility("default")]] int toto_program(int argc, char** argv);
