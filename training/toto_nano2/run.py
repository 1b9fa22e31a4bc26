# SPDX-License-Identifier: Apache-2.0
"""The weights of a run, what a step does to them, and its files."""

import copy
import json

import torch

from . import captured, optimizer, tensors
from .losses import Losses, weighted
from .model import TAUS, Config, Toto2
from .team import Team

LARGEST_FILE = 15_000_000  # bytes of one file of a state


class Run:
    def __init__(self, recipe, device, compiled=False, team=None):
        self.recipe, self.device, self.team = recipe, device, team or Team(device)
        torch.manual_seed(recipe["seed"])
        self.model = Toto2(Config(**recipe["model"])).to(device)
        self.slow = copy.deepcopy(self.model).requires_grad_(False)
        hidden, rest = optimizer.split(self.model)
        self.muon = optimizer.Muon(hidden, recipe["weight_decay"], compiled)
        self.adam = optimizer.Adam(rest)
        self.amp = recipe["bfloat16"]
        self.losses = Losses(compiled)
        self.step, self.elapsed = 0, 0.0
        self.usual = torch.zeros((), device=device)  # norm, once there is one
        self.rate = torch.zeros((), device=device)
        params = self.muon.parameters() + self.adam.params
        self.sent = torch.zeros(sum(p.numel() for p in params) + 1, device=device)  # gradients and loss
        self.captured = None

    def everything(self):
        """All that a step changes."""
        parts = [*self.model.parameters(), *self.slow.parameters(), *self.muon.momentum.values()]
        return [*parts, self.adam.first, self.adam.second, self.adam.steps, self.usual]

    def train_on(self, prepared, rate):
        self.rate.fill_(rate)
        self.step += 1
        return self.captured.step(prepared) if self.captured else self.whole_step(prepared)

    def trust(self, expected, found):
        """Plain steps from now on, where a graph's loss is not what the weights give."""
        off = abs(found.item() / max(expected.item(), 1e-9) - 1)
        if not off < captured.CLOSE:
            print(f"step {self.step}: the graph's loss is off by {off:.3g}: plain steps", flush=True)
            self.captured = None

    def loss_of(self, prepared):
        """Mean loss of a batch and what is trained on."""
        dtype = torch.bfloat16 if self.amp else torch.float32
        loss, share, band = self.losses.tokens(self.model, prepared, dtype)
        mean = loss.detach().sum() / share.sum().clamp(min=1)
        return mean, weighted(loss, share, self.recipe["evenness"], band)

    def whole_step(self, prepared):
        """Everything on the device, the same kernels whatever the numbers: see captured.py."""
        self.gradients(prepared)
        self.team.mean_(self.sent)
        return self.update()

    def gradients(self, prepared):
        """The gradients of a batch, end to end, and its loss, into `sent`."""
        mean, total = self.loss_of(prepared)
        total.backward()
        params = self.muon.parameters() + self.adam.params
        with torch.no_grad():  # a batch of single variates leaves out what joins them
            grads = [torch.zeros_like(p) if p.grad is None else p.grad for p in params]
            torch.cat([*(g.flatten() for g in grads), mean.view(1)], out=self.sent)
        self.model.zero_grad(set_to_none=True)

    def update(self):
        """A step along what is in `sent`. Returns loss and norm."""
        r = self.recipe
        with torch.no_grad():
            flat, mean = self.sent[:-1], self.sent[-1].clone()
            norm = torch.linalg.vector_norm(flat)
            # Clipped at a multiple of what is usual: in unit scale the head's factor makes norms small.
            usual = torch.where(self.usual > 0, self.usual, norm)
            factor = (r["clip"] * usual / norm).clamp(max=1).nan_to_num(0, 0, 0)
            finite = norm.isfinite()  # a step that is lost leaves weights and norm as they are
            rate = torch.where(finite, self.rate, 0.0)
            self.usual.copy_(torch.where(finite, usual.lerp(norm * factor, 0.02).nan_to_num(0, 0, 0), self.usual))
            flat = (flat * factor).nan_to_num(0, 0, 0)
            hidden, rest = flat.split([sum(m.numel() for m in self.muon.momentum.values()), self.adam.size.numel()])
            self.adam.step(rest, r["adam_lr"] * rate)
            self.muon.step(hidden, r["muon_lr"] * rate, self.amp)
            steps = self.adam.steps
            keep = (steps / (steps + 10)).clamp(max=r["ema"])
            slow, now = list(self.slow.parameters()), list(self.model.parameters())
            change = torch._foreach_sub(now, slow)
            torch._foreach_mul_(change, (1 - keep).float())
            torch._foreach_add_(slow, change)
        return mean, norm

    def save(self, folder, info, light=False):
        """Files of less than LARGEST_FILE bytes each; the averaged model also as a checkpoint.
        `light`: no state to go on from, but the last weights in last.safetensors."""
        folder.mkdir(parents=True, exist_ok=True)
        kept = torch.bfloat16 if self.recipe["bfloat16"] else torch.float32
        tensors.save_checkpoint(folder, self.slow.config, self.slow.state_dict(), kept)
        if light:
            tensors.save_weights(folder / "last.safetensors", self.model.state_dict(), kept)
            return
        state = {f"model.{k}": v for k, v in self.model.state_dict().items()}
        state |= {f"muon.{k}": v for k, v in self.muon.state().items()}
        state |= {f"adam.{k}": v for k, v in self.adam.state().items()}
        # A flat copy of the run: rounded to bfloat16 once per interruption where a run uses it.
        parts, size = [{}], 0
        for name, t in state.items():
            t = t.to(torch.float32 if name.startswith("adam.v") or name.endswith(TAUS) else kept)
            size += t.numel() * t.element_size()
            if size > LARGEST_FILE:
                parts.append({})
                size = t.numel() * t.element_size()
            parts[-1][name] = t
        for i, part in enumerate(parts):
            tensors.write(folder / f"state{i}.safetensors", part)
        info = {"step": self.step, "elapsed": self.elapsed, "adam_count": self.adam.count, **info}
        (folder / "state.json").write_text(json.dumps(info))

    def begin_from(self, folder):
        """The weights of a checkpoint, everything else as new."""
        state = tensors.load_checkpoint(folder).state_dict()
        self.model.load_state_dict(state)
        self.slow.load_state_dict(state)

    def load(self, folder):
        info = json.loads((folder / "state.json").read_text())
        state = {}
        for path in sorted(folder.glob("state*.safetensors")):
            state |= tensors.read(path)
        part = lambda k: {n.removeprefix(k): t for n, t in state.items() if n.startswith(k)}  # noqa: E731
        taus = {k: t for k, t in self.model.state_dict().items() if k.endswith(TAUS)}  # older states lack them
        self.model.load_state_dict(taus | {k: t.float() for k, t in part("model.").items()})
        self.muon.load(part("muon."))
        self.adam.load(part("adam."), info["adam_count"])
        slow = tensors.load_checkpoint(folder)
        self.slow.load_state_dict(slow.state_dict())
        self.step, self.elapsed = info["step"], info["elapsed"]
        return info
