# SPDX-License-Identifier: Apache-2.0
"""A folder of results that is filled part by part: each part is whole or not there, whatever interrupts the work."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ._errors import make, usage

_MANIFEST = "_forecast.json"
_SUCCESS = "_SUCCESS"
_TEMPORARY = re.compile(r"\..*\.tmp")
_OWN = re.compile(r"_SUCCESS|part-\d{5,}(-\d{5,})*\.(parquet|jsonl|csv)|_(done|rows)-\d+-of-\d+|" + _TEMPORARY.pattern)


def write_atomically(path: Path, write: Callable[[Path], None]) -> None:
    """``write`` fills a file of another name, which then takes the name of ``path``."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        write(temporary)
        with open(temporary, "rb") as file:
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def write_text_atomically(path: Path, text: str) -> None:
    def write(temporary: Path) -> None:
        temporary.write_text(text)

    write_atomically(path, write)


class Parts:
    """The folder. ``described`` says what is computed from what: work is resumed where it is the same."""

    def __init__(self, folder: Path, suffix: str, described: dict[str, Any], shard: tuple[int, int], resume: bool) -> None:
        self.folder = folder
        self.suffix = suffix
        self.shard = shard
        text = json.dumps(described, indent=1, sort_keys=True, default=str)
        manifest = folder / _MANIFEST
        if folder.exists() and any(not _TEMPORARY.fullmatch(path.name) for path in folder.iterdir()):
            before = manifest.read_text() if manifest.exists() else None
            if before is None:
                raise usage(
                    "output_exists", "the folder holds something else", str(folder), "choose another one, or empty this one"
                )
            if not resume:
                if shard[1] > 1:
                    raise usage("output_exists", "shards cannot begin anew in one folder", str(folder), "empty it first")
                _empty(folder)
            elif before != text:
                raise usage(
                    "other_output", f"the folder holds forecasts of other inputs or options ({_changed(before, text)})",
                    str(folder), "choose another folder, or resume=False to begin anew",
                )  # fmt: skip
        folder.mkdir(parents=True, exist_ok=True)
        write_text_atomically(manifest, text)

    @staticmethod
    def name(*numbers: int) -> str:
        return "part-" + "-".join(f"{number:05d}" for number in numbers)

    def path(self, name: str) -> Path:
        return self.folder / (name + self.suffix)

    def mine(self, count: int) -> bool:
        """Whether part number ``count`` belongs to this shard."""
        return count % self.shard[1] == self.shard[0]

    def there(self, name: str) -> bool:
        return self.path(name).exists()

    def all(self) -> list[Path]:
        return sorted(self.folder.glob("part-*" + self.suffix))

    def finish(self) -> bool:
        """Marks this shard as done; True where it was the last one, and all is there."""
        index, count = self.shard
        if count > 1:
            write_text_atomically(self.folder / f"_done-{index}-of-{count}", "")
            if any(not (self.folder / f"_done-{i}-of-{count}").exists() for i in range(count)):
                return (self.folder / _SUCCESS).exists()
        write_text_atomically(self.folder / _SUCCESS, "")
        for path in self.folder.iterdir():  # of shards that are done, and of processes that were killed
            if re.fullmatch(r"_done-\d+-of-\d+", path.name) or _TEMPORARY.fullmatch(path.name):
                path.unlink(missing_ok=True)
            elif re.fullmatch(r"_rows-\d+-of-\d+", path.name):
                shutil.rmtree(path, ignore_errors=True)
        return True


def _empty(folder: Path) -> None:
    """Without what runs before this one wrote. What else is in the folder stays."""
    for path in sorted(folder.iterdir()):  # _SUCCESS before the parts
        if not _OWN.fullmatch(path.name):
            continue
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()


def _changed(before: str, now: str) -> str:
    a, b = json.loads(before), json.loads(now)
    return ", ".join(sorted(name for name in a.keys() | b.keys() if a.get(name) != b.get(name)))


WHOLE = 1 << 30  #: bytes of inputs that are hashed whole: a second
_SAMPLES, _SAMPLE = 64, 1 << 16


def fingerprint(path: str | os.PathLike[str], whole: bool = False) -> list[Any]:
    """Of a file: its size, and a hash of all of it, or of its beginning, its end and parts between. Times of change differ
    between copies."""
    size = os.stat(path).st_size
    hashed = hashlib.blake2b(digest_size=12)
    with open(path, "rb") as file:
        if whole or size <= _SAMPLES * _SAMPLE:
            while block := file.read(1 << 20):
                hashed.update(block)
        else:
            for i in range(_SAMPLES):
                file.seek((size - _SAMPLE) * i // (_SAMPLES - 1))
                hashed.update(file.read(_SAMPLE))
    return [size, hashed.hexdigest()]


def parse_shard(given: str | tuple[int, int] | None) -> tuple[int, int]:
    """"2/7" or (2, 7): the third of seven. Shards count from 0."""
    try:
        index, count = (0, 1) if given is None else (int(n) for n in (given.split("/") if isinstance(given, str) else given))
    except ValueError:
        index, count = -1, 0
    if not 0 <= index < count:
        raise usage("invalid_shard", f"expected I/N with 0 <= I < N, found {given!r}", "shard", "shards count from 0: 0/4 to 3/4")
    return index, count


def missing(path: str) -> Exception:
    return make(66, "no_input", "no such file or folder", path, "", f"[no_input] {path}: no such file or folder")
