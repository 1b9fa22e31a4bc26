// SPDX-License-Identifier: Apache-2.0
// Preloaded into the program: allocation number FAIL_ALLOCATION (from 1) fails, all others succeed.
// The number of allocations is written to the file FAIL_ALLOCATION_COUNT when the program exits.
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <atomic>

extern "C" {
void* __libc_malloc(size_t size);                      // NOLINT: glibc's own names
void* __libc_calloc(size_t count, size_t size);        // NOLINT
void* __libc_realloc(void* old, size_t size);          // NOLINT
void* __libc_memalign(size_t alignment, size_t size);  // NOLINT
}

namespace {

std::atomic<long> calls = 0;
std::atomic<long> failing = -1;  // not yet known

bool fails() {
  if (environ == nullptr) return false;  // the loader is not done
  long number = failing;
  if (number < 0) {
    const char* const text = getenv("FAIL_ALLOCATION");
    number = text == nullptr ? 0 : atol(text);
    failing = number;
  }
  if (++calls != number) return false;
  errno = ENOMEM;
  return true;
}

[[gnu::destructor]] void tell() {
  const char* const path = getenv("FAIL_ALLOCATION_COUNT");
  if (path == nullptr) return;
  const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  char line[32];
  const int size = snprintf(line, sizeof line, "%ld\n", calls.load());
  if (fd >= 0 && write(fd, line, static_cast<size_t>(size)) == size) close(fd);
}

}  // namespace

extern "C" {

void* malloc(size_t size) { return fails() ? nullptr : __libc_malloc(size); }
void* calloc(size_t count, size_t size) { return fails() ? nullptr : __libc_calloc(count, size); }
void* realloc(void* old, size_t size) { return fails() ? nullptr : __libc_realloc(old, size); }
void* memalign(size_t alignment, size_t size) {
  return fails() ? nullptr : __libc_memalign(alignment, size);
}
void* aligned_alloc(size_t alignment, size_t size) { return memalign(alignment, size); }
int posix_memalign(void** out, size_t alignment, size_t size) {
  void* const got = memalign(alignment, size);
  if (got == nullptr) return ENOMEM;
  *out = got;
  return 0;
}

}  // extern "C"
