# SPDX-License-Identifier: Apache-2.0
"""Series ahead of the training: processes make chunks, a ring per kind keeps them on the device."""

import multiprocessing
import os
import queue
import random
import threading
import time

import torch

from . import series

WEIGHTS = {"long": 0.30, "middle": 0.17, "short": 0.18, "group": 0.09, "brief": 0.17, "shortest": 0.09}
MARGIN = 0.02  # of a full ring, behind the place that is being overwritten


def kind_of(seed: int) -> str:
    return random.Random(seed).choices(list(WEIGHTS), list(WEIGHTS.values()))[0]


def work(slots, free, ready, seed, stride, points):
    """A process: chunk after chunk into shared memory."""
    torch.set_num_threads(1)
    os.nice(10)
    parent = os.getppid()
    while True:
        try:
            slot = free.get(timeout=20)
        except queue.Empty:
            if os.getppid() != parent:
                return
            continue
        if slot is None:
            return
        kind = kind_of(seed)
        made = series.chunk(seed, kind, points).flatten()
        slots[slot, : len(made)] = made
        ready.put((slot, kind, len(made)))
        seed += stride


class Ring:
    """The last chunks of one kind."""

    def __init__(self, kind, points, device):
        t = series.LENGTHS[kind]
        self.shape = (series.VARIATES, t) if kind == "group" else (1, t)
        self.rows = max(64, int(points) // (self.shape[0] * t))
        self.data = torch.empty(self.rows, *self.shape, device=device)
        self.head = self.count = 0

    def put(self, flat):
        new = flat.view(-1, *self.shape)[: self.rows]
        at = 0 if self.head + len(new) > self.rows else self.head
        self.data[at : at + len(new)].copy_(new)
        if new.is_cuda:
            torch.cuda.current_stream().synchronize()  # whoever samples finds it whole
        self.head = at + len(new)
        self.count = max(self.count, self.head)

    def sample(self, n, generator):
        """n rows; a full ring keeps clear of what may be written next."""
        margin = int(MARGIN * self.rows) if self.count > 0.9 * self.rows else 0
        at = torch.randint(self.count - margin, (n,), generator=generator, device=self.data.device)
        return self.data[(at + self.head + margin) % self.count if margin else at]


class Pool:
    def __init__(self, seed, points, device, chunk_points=series.POINTS):
        self.rings = {k: Ring(k, points * w, device) for k, w in WEIGHTS.items()}
        self.seed, self.chunk_points, self.chunks = seed, chunk_points, 0
        self.processes, self.running = [], True
        self.points = 0
        self.lock = threading.Lock()
        self.busy = threading.Lock()  # held while a chunk goes to the device
        self.on_device, self.here, self.spent = str(device) == "cuda", 0, 0.0
        self.device_points, self.began = 30 * chunk_points, time.monotonic()

    def fill_here(self):
        """Makes the next chunk in this process: for runs that must follow from the seed."""
        seed = self.seed + self.chunks
        kind = kind_of(seed)
        if self.chunks < len(WEIGHTS):
            kind = list(WEIGHTS)[self.chunks]  # none stays empty
        self.put(kind, series.chunk(seed, kind, self.chunk_points).flatten())

    def put(self, kind, flat):
        with self.lock:
            self.rings[kind].put(flat)
            self.chunks += 1
            self.points += len(flat)

    def ready(self):
        return all(r.count for r in self.rings.values())

    def start(self, workers, slots=None):
        slots = slots or 2 * workers
        context = multiprocessing.get_context("spawn")
        shared = torch.empty(slots, self.chunk_points).share_memory_()
        self.free, self.made = context.Queue(), context.Queue()
        for i in range(slots):
            self.free.put(i)
        for i in range(workers):
            args = (shared, self.free, self.made, self.seed + i, workers, self.chunk_points)
            self.processes.append(context.Process(target=work, args=args, daemon=True))
            self.processes[-1].start()
        threading.Thread(target=self.collect, args=(shared,), daemon=True).start()

    def collect(self, shared):
        """A thread: finished chunks to the device, on a stream of its own."""
        device = next(iter(self.rings.values())).data.device
        cuda = device.type == "cuda"
        if cuda:
            torch.cuda.set_device(device)  # a thread begins with the first one
        stream = torch.cuda.Stream() if cuda else None
        staging = torch.empty(self.chunk_points, pin_memory=cuda)
        while self.running:
            try:
                slot, kind, size = self.made.get(timeout=1)
            except queue.Empty:
                continue
            staging[:size].copy_(shared[slot, :size])
            self.free.put(slot)
            if cuda:
                with self.busy, torch.cuda.stream(stream):
                    self.put(kind, staging[:size].to(device, non_blocking=True))
                    stream.synchronize()  # before the staging memory is used again
            else:
                self.put(kind, staging[:size])

    def begin_on_device(self, points):
        """The first chunks, made on the device itself so that training need not wait."""
        while self.on_device and self.points < points:
            self.make_on_device()

    def fill_on_device(self, share):
        """One more chunk from the device while that takes less than this share of its time."""
        if self.on_device and self.spent < share * (time.monotonic() - self.began):
            self.make_on_device()

    def make_on_device(self):
        begin = time.monotonic()
        seed = self.seed + 5 * 10**8 + self.here
        kind = list(WEIGHTS)[self.here] if self.here < len(WEIGHTS) else kind_of(seed)
        self.here += 1
        try:
            made = series.chunk(seed, kind, self.device_points, "cuda")
            self.put(kind, made.flatten())
            torch.cuda.synchronize()
        except RuntimeError as e:
            print(f"no series from the device: {e!r}"[:1000], flush=True)
            self.on_device = False
        self.spent += time.monotonic() - begin

    def wait(self, seconds=120):
        end = time.monotonic() + seconds
        while not self.ready():
            if time.monotonic() > end:
                raise RuntimeError("no series came in time")
            time.sleep(0.05)

    def stop(self):
        self.running = False
        for p in self.processes:
            p.terminate()
