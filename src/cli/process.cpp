// SPDX-License-Identifier: Apache-2.0
#include "cli/process.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <exception>
#include <new>
#include <span>
#include <string>

#include "core/atomic_file.h"
#include "core/descriptor.h"
#include "core/printable.h"
#include "toto/error.hpp"

namespace toto::cli {
namespace {

bool output_was_open = true;

bool is_closed(int fd) noexcept { return ::fcntl(fd, F_GETFD) < 0 && errno == EBADF; }

/// Where an exception cannot be passed on (it is thrown in a noexcept function, or before main),
/// the program ends here. Memory that ran out is no defect: it gets the line and the status it gets
/// everywhere, and no temporary file stays.
[[noreturn]] void end_without_unwinding() noexcept {
  remove_unfinished_files();
  if (const std::exception_ptr error = std::current_exception()) {
    try {
      std::rethrow_exception(error);
    } catch (const std::bad_alloc&) {
      ::_exit(fail_out_of_memory());
    } catch (...) {
      say("[internal] an exception that nothing caught (this is a defect of toto: please report "
          "it)");
    }
  }
  std::abort();
}

// CLI11 and the C++ library allocate for objects that exist before main.
[[gnu::constructor(101)]] void install_end() { std::set_terminate(end_without_unwinding); }

/// Without memory for the decoding: ASCII control characters alone.
void say_plainly(std::string_view text) noexcept {
  std::array<char, 512> line;
  std::size_t size = 0;
  for (const char c : text) {
    if (size == line.size()) {
      write_to_stderr({line.data(), size});
      size = 0;
    }
    line[size++] = static_cast<unsigned char>(c) < 0x20 || c == 0x7F ? ' ' : c;
  }
  write_to_stderr({line.data(), size});
}

}  // namespace

void prepare_process() noexcept {
  output_was_open = !is_closed(STDOUT_FILENO);
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (!is_closed(fd)) continue;
    // The lowest free descriptor is taken, which is this one. The wrong direction is on purpose:
    // results for a stream that is closed are an error, not lost.
    [[maybe_unused]] const int same = ::open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  }
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGXFSZ, SIG_IGN);
}

bool has_standard_output() noexcept { return output_was_open; }

void write_to_stderr(std::string_view bytes) noexcept {
  [[maybe_unused]] const bool written =
      write_all(STDERR_FILENO, std::as_bytes(std::span(bytes.data(), bytes.size())));
}

void say(std::string_view text) noexcept {
  try {
    // In one piece, so that lines of several processes do not mix.
    std::string line = "toto: ";
    line.append(to_utf8(printable(text))).append("\n");
    write_to_stderr(line);
  } catch (const std::bad_alloc&) {
    write_to_stderr("toto: ");
    say_plainly(text);
    write_to_stderr("\n");
  }
}

int fail_out_of_memory() noexcept {
  write_to_stderr(
      "toto: [out_of_memory] not enough memory (use a shorter --context, fewer --samples or fewer "
      "series at a time)\n");
  return static_cast<int>(ExitStatus::internal);
}

}  // namespace toto::cli
