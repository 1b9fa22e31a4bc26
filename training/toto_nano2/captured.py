# SPDX-License-Identifier: Apache-2.0
"""Whole steps of a run as CUDA graphs, one for each shape of a batch: a step is one launch, or two
with the exchange of gradients between them where several processes train.

A graph is used only if it leaves what a plain step leaves: `Captured.make` tries both on the same
batches and says what it found. Whatever fails, the run goes on with plain steps.
"""

import faulthandler
import time

import torch

FIELDS = ("inputs", "target", "counts", "time_mask", "variate_mask")
STEPS = 3  # of each kind, to compare
CLOSE, LATER, MOVED = 2e-3, 1e-2, 0.5  # of the first loss, of later ones, of what the weights moved
PATIENCE = 150  # seconds for all shapes: a graph that hangs ends the process


def synchronise(device):
    if torch.device(device).type == "cuda":
        torch.cuda.synchronize()


class Again:
    """In the place of a graph where there is none: the same calls once more. For tests."""

    def __init__(self, body):
        self.body = body

    def replay(self):
        self.body()


def recorded(body, device, memory):
    if torch.device(device).type != "cuda":
        return Again(body)
    graph = torch.cuda.CUDAGraph()
    # Another thread copies series to the device: only calls of this one may spoil the recording.
    stream = torch.cuda.current_stream()
    with torch.cuda.graph(graph, pool=memory, stream=stream, capture_error_mode="thread_local"):
        body()
    return graph


class Captured:
    def __init__(self, run, record=recorded):
        self.run, self.record, self.graphs = run, record, {}
        cuda = torch.device(run.device).type == "cuda"
        self.memory = torch.cuda.graph_pool_handle() if cuda else None

    @staticmethod
    def key(prepared):
        return tuple(prepared.inputs.shape)

    def add(self, prepared):
        """Records a step for batches of this shape. Nothing is computed on a GPU."""
        held = type(prepared)(**{k: v.clone() if k in FIELDS else None for k, v in vars(prepared).items()})
        run, out = self.run, torch.zeros(2, device=prepared.inputs.device)
        gradients, update = (lambda: run.gradients(held)), (lambda: out.copy_(torch.stack(run.update())))

        def whole():
            gradients()
            update()

        run.model.zero_grad(set_to_none=True)
        bodies = (whole,) if run.team.size == 1 else (gradients, update)
        graphs = [self.record(body, run.device, self.memory) for body in bodies]
        run.model.zero_grad(set_to_none=True)
        self.graphs[self.key(prepared)] = held, graphs, out

    def step(self, prepared):
        """Loss and norm, as of `whole_step`."""
        held, graphs, out = self.graphs[self.key(prepared)]
        for name in FIELDS:
            getattr(held, name).copy_(getattr(prepared, name))
        graphs[0].replay()
        for graph in graphs[1:]:
            self.run.team.mean_(self.run.sent)
            graph.replay()
        return out.clone().unbind()

    def compared(self, prepared, rate=0.5):
        """(what is wrong or "", ms of a plain step, ms of a graph); the run is left as it was."""
        run = self.run
        kept = run.everything()
        before = [t.clone() for t in kept]

        def back():
            with torch.no_grad():
                for t, old in zip(kept, before):
                    t.copy_(old)

        def tried(step):
            run.rate.fill_(rate)
            synchronise(run.device)
            losses = [step(prepared)[0]]  # the first may have to be made ready
            synchronise(run.device)
            begin = time.monotonic()
            losses += [step(prepared)[0] for _ in range(STEPS - 1)]
            synchronise(run.device)
            seconds = (time.monotonic() - begin) / (STEPS - 1)
            weights = torch.cat([p.detach().flatten() for p in run.model.parameters()])
            return torch.stack(losses).tolist(), weights, 1e3 * seconds

        start = torch.cat([p.detach().flatten() for p in run.model.parameters()])
        tried(run.whole_step)  # compiles what is left to compile
        back()
        plain, there, slow = tried(run.whole_step)
        back()
        failed = None
        try:
            self.add(prepared)
        except Exception as e:  # whatever a recording refuses
            failed = e
        if not run.team.all(failed is None):  # or others would wait for this one's gradients
            raise failed or RuntimeError("another process has none")
        ours, here, fast = tried(self.step)
        back()
        run.model.zero_grad(set_to_none=True)
        moved = (there - start).norm()
        apart = ((here - there).norm() / moved.clamp(min=1e-12)).item()
        off = [abs(a - b) / max(abs(a), 1e-9) for a, b in zip(plain, ours)]
        said = f"losses {plain} and {ours}, weights apart {apart:.3g} of {moved.item():.3g}"
        right = off[0] < CLOSE and max(off) < LATER and apart < MOVED and moved > 0
        if not run.team.all(right):
            return said, slow, fast
        return "", slow, fast

    @classmethod
    def make(cls, run, batches, say=print, record=recorded):
        """For every batch a graph, or None where one fails, differs or is no faster."""
        cuda = torch.device(run.device).type == "cuda"
        if cuda:
            faulthandler.dump_traceback_later(PATIENCE, exit=True)
        try:
            made, slow, fast = cls(run, record), 0.0, 0.0
            for prepared in batches:
                wrong, a, b = made.compared(prepared)
                if wrong:
                    say(f"steps are not graphs, they differ: {wrong}")
                    return None
                slow, fast = slow + a, fast + b
                say(f"a graph of {tuple(prepared.inputs.shape[:3])}: {a:.1f} ms, {b:.1f} ms")
            if cuda and fast > 1.02 * slow:
                say("steps are not graphs, they are no faster")
                return None
            return made
        except Exception as e:  # whatever a recording refuses
            say(f"steps are not graphs: {e!r}"[:2000])
            run.model.zero_grad(set_to_none=True)
            synchronise(run.device)  # raises where the device is lost: the caller begins anew
            return None
        finally:
            if cuda:
                faulthandler.cancel_dump_traceback_later()
