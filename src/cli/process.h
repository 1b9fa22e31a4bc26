// SPDX-License-Identifier: Apache-2.0
// The process as its parent left it: standard streams that may be closed, full or non-blocking,
// signals, and an end without memory.
#pragma once

#include <string_view>

namespace toto::cli {

/// Call it before anything else. Descriptors 0 to 2 that are closed become ones that can be neither
/// read nor written, so that no file that is opened later takes their place. A reader that goes
/// away (SIGPIPE) and a limit on the size of files (SIGXFSZ) become errors of writing.
void prepare_process() noexcept;

/// Whether standard output was open when the process began.
[[nodiscard]] bool has_standard_output() noexcept;

/// `toto: ` and the text as one line on standard error. What would act on a terminal does not reach
/// it: line ends become spaces, other control characters U+FFFD. Never fails: where the line cannot
/// be written there is nobody to tell.
void say(std::string_view text) noexcept;

/// Bytes as they are on standard error (a progress bar); likewise never fails.
void write_to_stderr(std::string_view bytes) noexcept;

/// Says that memory ran out, with the status to end with. Allocates nothing.
int fail_out_of_memory() noexcept;

}  // namespace toto::cli
