# SPDX-License-Identifier: Apache-2.0
"""What the benchmarks of many series share: sections of a page of results, the command and the machine in words."""

import os
import platform
import subprocess
import sys
from datetime import date
from pathlib import Path


def put_section(page, heading, lines):
    """Writes "## heading" and its lines into a page, in place of the section of that name, or at the end."""
    page = Path(page)
    text = page.read_text() if page.exists() else ""
    section = f"## {heading}\n\n" + "\n".join(lines).rstrip() + "\n"
    blocks, kept, found = text.split("\n## "), [], False
    for i, block in enumerate(blocks):
        if i > 0 and block.split("\n", 1)[0] == heading:
            kept.append(section[3:].rstrip("\n") + "\n")
            found = True
        else:
            kept.append(block)
    text = "\n## ".join(kept)
    if not found:
        text = text.rstrip("\n") + ("\n\n" if text else "") + section
    page.write_text(text)


def words():
    """The command as a page shows it, without the paths of a machine."""
    hidden = {"--folder": "DIR", "--results": "PAGE", "--json": "FILE", "--toto": "PROGRAM", "--toto2": "build/4m"}
    given = [Path(sys.argv[0]).name, *sys.argv[1:]]
    for i, word in enumerate(given[:-1]):
        if word in hidden:
            given[i + 1] = hidden[word]
    return "bench/" + " ".join(given)


def today():
    return date.today().isoformat()


def commit():
    """Of the checkout that this file is in; with "+" where files were changed since."""
    here = Path(__file__).parent
    try:
        name = subprocess.run(["git", "-C", here, "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True).stdout.strip()
        changed = subprocess.run(["git", "-C", here, "status", "--porcelain", "--untracked-files=no"], capture_output=True, text=True).stdout
        return name + ("+" if changed.strip() else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def processor():
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


def machine():
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return f"{len(os.sched_getaffinity(0))} cores of {processor()}, {memory:.0f} GiB"


def table(head, rows):
    return ["| " + " | ".join(head) + " |", "|" + "---|" * len(head), *("| " + " | ".join(map(str, row)) + " |" for row in rows)]
