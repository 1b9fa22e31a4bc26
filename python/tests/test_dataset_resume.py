# SPDX-License-Identifier: Apache-2.0
"""Files to files: runs that are interrupted, killed and resumed, and what is not resumed."""

import random
import signal
import subprocess
import time

import numpy as np
import pytest

pytest.importorskip("pyarrow")

import pyarrow.parquet as pq  # noqa: E402

import toto_cpp  # noqa: E402
from scale_data import COUNT, H, OPTIONS, as_lists, as_long, command, digest, run  # noqa: E402
from toto_cpp import forecast_dataset  # noqa: E402
from toto_cpp._parts import fingerprint  # noqa: E402
from toto_cpp._plan import Plan  # noqa: E402


@pytest.mark.parametrize(("form", "kills"), [("lists", 20), ("long", 5)])
def test_killed_at_random_moments_and_resumed(form, kills, request, tmp_path):
    """The same bytes as without: SIGKILL leaves nothing half written that counts."""
    random.seed(form)
    big = tmp_path / "big.parquet"
    if form == "long":
        pytest.importorskip("duckdb")
    pq.write_table(as_lists(1200) if form == "lists" else as_long(1200), big, **(dict(row_group_size=300) if form == "lists" else {}))
    layout = ["--part-rows", "20"] if form == "lists" else []
    begun = time.monotonic()
    subprocess.run(command(big, tmp_path / "whole", *layout), check=True, capture_output=True)
    took = time.monotonic() - begun
    killed = 0
    for _ in range(kills):
        program = subprocess.Popen(command(big, tmp_path / "out", *layout), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            program.wait(random.uniform(0.2, 1) * took / (3 if form == "lists" else 1))
        except subprocess.TimeoutExpired:
            program.kill()
            program.wait()
            killed += 1
        for path in (tmp_path / "out").glob("part-*"):
            pq.read_metadata(path)  # whole
    assert killed >= kills // 4
    subprocess.run(command(big, tmp_path / "out", *layout), check=True, capture_output=True)
    assert digest(tmp_path / "out") == digest(tmp_path / "whole")


def test_interrupted_from_the_keyboard(tmp_path):
    big = tmp_path / "big.parquet"
    pq.write_table(as_lists(4000), big)
    program = subprocess.Popen(command(big, tmp_path / "out", "--part-rows", "50"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while not list((tmp_path / "out").glob("part-*")) if (tmp_path / "out").exists() else True:
        time.sleep(0.02)
    program.send_signal(signal.SIGINT)
    said = program.communicate(timeout=30)[1]
    assert program.returncode == 130 and "goes on from here" in said, said
    assert not list((tmp_path / "out").glob(".*tmp"))
    assert 0 < len(list((tmp_path / "out").glob("part-*"))) < 80


def change_a_digit(path):
    """In the middle, so that the size stays."""
    content = bytearray(path.read_bytes())
    at = content.index(b".", len(content) // 2) + 1
    content[at] = ord("1") if content[at] == ord("0") else ord("0")
    path.write_bytes(content)


def test_a_value_that_was_mended_is_seen(tmp_path):
    pytest.importorskip("duckdb")
    rng = np.random.default_rng(0)
    days = np.datetime64("2024-01-01") + np.arange(1500)
    rows = [f"s{i},{day},{value:.4f}" for i in range(20) for day, value in zip(days, 10 + rng.random(1500), strict=True)]
    source, out = tmp_path / "long.csv", tmp_path / "out"
    source.write_text("\n".join(["unique_id,ds,y", *rows]) + "\n")
    run(source, out)
    change_a_digit(source)
    with pytest.raises(toto_cpp.UsageError, match=r"other_output.*inputs"):
        run(source, out)


def test_fingerprints(tmp_path):
    """Of large inputs beginning, end and samples between count, and the size; what lies between samples does not."""
    path = tmp_path / "large"
    path.write_bytes(b"0.5 " * (3 << 19))
    found = {whole: fingerprint(path, whole) for whole in (True, False)}
    change_a_digit(path)
    assert fingerprint(path, True) != found[True] and fingerprint(path) == found[False]
    for at in (0, path.stat().st_size - 1):
        before = fingerprint(path)
        with path.open("r+b") as file:
            file.seek(at)
            file.write(b"9")
        assert fingerprint(path) != before


def test_a_run_of_other_things_is_not_resumed(lists, tmp_path):
    out = tmp_path / "out"
    run(lists, out)
    before = digest(out)
    assert run(lists, out).series == 0
    with pytest.raises(toto_cpp.UsageError, match=r"other_output.*\(h\)"):
        forecast_dataset(lists, out, H + 1, **OPTIONS)
    with pytest.raises(toto_cpp.UsageError, match=r"other_output.*options"):
        run(lists, out, seed=4)
    pq.write_table(as_lists(COUNT, seed=1), lists)
    with pytest.raises(toto_cpp.UsageError, match=r"other_output.*inputs"):
        run(lists, out)
    assert digest(out) == before
    assert run(lists, out, resume=False).series == COUNT and digest(out) != before
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("")
    with pytest.raises(toto_cpp.UsageError, match="output_exists"):
        run(lists, tmp_path / "mine", resume=False)
    assert (tmp_path / "mine" / "letter.txt").exists()
    (out / "letter.txt").write_text("mine")
    (out / "part-00000-00000-00009.csv").write_text("of another run")
    run(lists, out, resume=False)
    assert (out / "letter.txt").read_text() == "mine" and not (out / "part-00000-00000-00009.csv").exists()


def test_parts_of_a_long_table_that_were_deleted_before_it_was_whole(long, tmp_path):
    """Their rows had been forgotten with them."""
    options = dict(buckets=6, freq="h")
    run(long, tmp_path / "whole", **options)
    with pytest.raises(OSError, match="no room"):
        with pytest.MonkeyPatch.context() as patch:
            written = []
            write = Plan.write

            def fails_at_the_fourth(self, name, table):
                written.append(name)
                if len(written) == 4:
                    raise OSError("no room")
                write(self, name, table)

            patch.setattr(Plan, "write", fails_at_the_fourth)
            run(long, tmp_path / "out", **options)
    parts = sorted((tmp_path / "out").glob("part-*"))
    assert parts
    parts[0].unlink()
    assert run(long, tmp_path / "out", **options).complete
    assert digest(tmp_path / "out") == digest(tmp_path / "whole")


def test_what_is_missing_is_made_again(lists, tmp_path):
    run(lists, tmp_path / "out", part_rows=10)
    before = digest(tmp_path / "out")
    (tmp_path / "out" / "part-00000-00001-00001.parquet").unlink()
    done = run(lists, tmp_path / "out", part_rows=10)
    assert (done.series, done.skipped, done.parts) == (10, COUNT - 10, 1) and digest(tmp_path / "out") == before


def test_a_killed_process_leaves_nothing_in_the_way(lists, tmp_path):
    """Half a manifest, half a part, rows of a bucket: all of a process that is no more."""
    out = tmp_path / "out"
    out.mkdir()
    for name in ("._forecast.json.1.tmp", ".part-00000-00000-00000.parquet.1.tmp"):
        (out / name).write_text("half")
    run(lists, out)
    (out / "_rows-0-of-3").mkdir()
    (out / ".part-00000-00000-00000.parquet.1.tmp").write_text("half")
    run(lists, out)
    run(lists, tmp_path / "clean")
    assert digest(out) == digest(tmp_path / "clean")
