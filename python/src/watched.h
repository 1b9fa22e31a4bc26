// SPDX-License-Identifier: Apache-2.0
// Long calls that Ctrl-C ends at once, whatever the engine is busy with.
#pragma once

#include <functional>

namespace toto::python {

/// Runs `work` on a thread of its own while this one looks for signals every 20 ms. Where one
/// raises (KeyboardInterrupt), `stop` is called and the exception thrown; the thread then goes on
/// until `work` heeds the stop, and what `work` owns is destroyed there, with the GIL held. What
/// `work` throws is thrown here. With the GIL held; `work` runs without.
void run_watched(std::function<void()> work, const std::function<void()>& stop);

/// In a process that was forked: the threads of the other one are not here.
void forget_watched() noexcept;

/// Waits for the threads of calls that were interrupted. Before the interpreter ends.
void wait_for_watched();

}  // namespace toto::python
