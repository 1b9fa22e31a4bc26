#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs clang-tidy over the sources of a build, several at a time, and remembers what passed.

    scripts/tidy.py CLANG_TIDY BUILD JOBS [arguments of clang-tidy]

A source is looked at again when it, a header that it reads, its flags, the checks or clang-tidy has changed. The build
must be up to date: it knows the headers, those that its own compiler reads. What passed lies in ~/.cache/toto-tidy
(XDG_CACHE_HOME), as empty files whose names are hashes; delete the folder to look at all again. Prints what clang-tidy
says of those that fail, and a summary; status 1 if one fails.
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
    for line in subprocess.run(["ninja", "-C", build, "-t", "deps"], check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines():
        if line.startswith("    "):
            if name:
                found[name].append(line.strip())
        elif ": #deps " in line:
            name = line.split(": #deps ")[0] if line.endswith("(VALID)") else None
            if name:
                found[name] = []
    return found


def checks_of(source, root):
    """The .clang-tidy files between the root, which every source has, and a source."""
    between = [folder for folder in pathlib.Path(source).parents if root in map(str, folder.parents)]
    return [f"{file.relative_to(root)} {digest(file)}" for file in (folder / ".clang-tidy" for folder in between) if file.exists()]


def key_of(source, commands, build, root, headers, run):
    """Names what decides what clang-tidy says of a source; None where the build does not know its headers, or one is gone."""
    parts = [run, *checks_of(source, root)]
    for command in commands:
        arguments = command.split()
        made_of = headers.get(arguments[arguments.index("-o") + 1])
        if not made_of:
            return None
        parts.append(command.replace(root, ""))
        try:
            parts += [f"{path.replace(root, '')} {digest(os.path.join(build, path))}" for path in made_of]
        except OSError:
            return None
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
            file.unlink(missing_ok=True)


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
        """Whether it was known, clang-tidy's status, and what it said."""
        key = key_of(source, sources[source], build, root, headers, run)
        if key and (folder / key).exists():
            (folder / key).touch()
            return True, 0, ""
        ran = subprocess.run([tidy, "-quiet", "-p", build, *extra, source], capture_output=True, text=True)
        if key and ran.returncode == 0:
            (folder / key).touch()
        return False, ran.returncode, ran.stdout + ran.stderr

    known, failed = 0, 0
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for source, (was_known, status, said) in zip(sources, pool.map(look, sources)):
            known += was_known
            if status:
                failed += 1
                print(f"{said}\n{source}: clang-tidy ended with {status}", flush=True)
    print(f"   {len(sources)} sources, {known} of them unchanged since they passed; {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
