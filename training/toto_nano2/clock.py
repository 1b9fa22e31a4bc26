# SPDX-License-Identifier: Apache-2.0
"""How far a run is, and the learning rate there."""

import time

AGREE = 16  # steps between two looks at the clock of the first process


def schedule(progress, warmup, decay):
    """Share of the learning rate: warm-up, constant, linear to zero over the last `decay`."""
    return max(0.0, min(1.0, progress / warmup + 0.01, (1 - progress) / decay))


class Clock:
    """How far a run is: by its steps, or by the seconds of all its parts. Several processes go by the
    first one's clock, and look at it every AGREE steps."""

    def __init__(self, run, steps, seconds, total, started):
        self.run, self.steps, self.seconds, self.total = run, steps, seconds, total
        self.started, self.before = started, run.elapsed
        self.every = AGREE if run.team.size > 1 else 1

    def tick(self):
        if self.run.step % self.every == 0:
            elapsed = self.before + time.monotonic() - self.started
            self.run.elapsed = self.run.team.of_first([elapsed])[0]

    def progress(self):
        return self.run.step / self.steps if self.steps else self.run.elapsed / self.total

    def over(self):
        if self.steps:
            return self.run.step >= self.steps
        return self.run.elapsed - self.before >= self.seconds or self.run.elapsed >= self.total
