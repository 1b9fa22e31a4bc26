#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs clang-tidy over the sources of a build, several at a time, and remembers what passed.

    scripts/tidy.py CLANG_TIDY BUILD JOBS [arguments of clang-tidy]

A source is looked at again when it, a header that it reads, its flags, the checks or clang-tidy has changed. What passed
lies in ~/.cache/toto-tidy (XDG_CACHE_HOME), as empty files whose names are hashes; delete the folder to look at all again.
Prints the findings, and a summary; status 1 if there is a finding.
"""
import concurrent.futures
import functools
import hashlib
import json
import os
import pathlib
import subprocess
import sys
import time

KEPT_DAYS = 30


@functools.lru_cache(maxsize=None)
def digest(path):
    return hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()


def headers_of(build):
    """What each object was made of, as ninja has recorded it: {object: [path, ...]}, relative to the build."""
    found, name = {}, None
    for line in subprocess.run(["ninja", "-C", build, "-t", "deps"], check=True, capture_output=True, text=True).stdout.splitlines():
        if line.startswith("    "):
            found[name].append(line.strip())
        elif ": #deps " in line and line.endswith("(VALID)"):
            name = line.split(": #deps ")[0]
            found[name] = []
    return found


def key_of(commands, build, root, headers, run):
    """Names all that decides what clang-tidy says of a source; None where the build does not know its headers."""
    parts = [run]
    for command in commands:
        arguments = command.split()
        made_of = headers.get(arguments[arguments.index("-o") + 1])
        if not made_of:
            return None
        parts.append(command.replace(root, ""))
        parts += [f"{path.replace(root, '')} {digest(os.path.join(build, path))}" for path in made_of]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def sources_of(build, root):
    """{source: [the commands that compile it]}"""
    sources = {}
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as file:
        for entry in json.load(file):
            if entry["file"].startswith(f"{root}/src/") and entry["file"].endswith(".cpp"):
                sources.setdefault(entry["file"], []).append(entry["command"])
    if not sources:
        sys.exit(f"{build} compiles nothing of {root}/src")
    return sources


def forget_old(folder):
    oldest = time.time() - KEPT_DAYS * 24 * 3600
    for file in folder.iterdir():
        if file.stat().st_mtime < oldest:
            file.unlink()


def main():
    tidy, build, jobs, extra = sys.argv[1], os.path.abspath(sys.argv[2]), int(sys.argv[3]), sys.argv[4:]
    root = str(pathlib.Path(__file__).resolve().parent.parent)
    version = subprocess.run([tidy, "--version"], check=True, capture_output=True, text=True).stdout
    run = "\n".join([version, digest(os.path.join(root, ".clang-tidy")), *extra])
    folder = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "toto-tidy"
    folder.mkdir(parents=True, exist_ok=True)
    forget_old(folder)
    headers = headers_of(build)
    sources = sources_of(build, root)

    def look(source):
        """Whether it was known, and the findings."""
        key = key_of(sources[source], build, root, headers, run)
        if key and (folder / key).exists():
            os.utime(folder / key)
            return True, ""
        ran = subprocess.run([tidy, "-quiet", "-p", build, *extra, source], capture_output=True, text=True)
        if ran.returncode:
            return False, ran.stdout + ran.stderr
        if key:
            (folder / key).touch()
        return False, ""

    known, failed = 0, 0
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for was_known, findings in pool.map(look, sources):
            known += was_known
            failed += bool(findings)
            if findings:
                print(findings, flush=True)
    print(f"   {len(sources)} sources, {known} of them as they were when they passed; {failed} with findings")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
