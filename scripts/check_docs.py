#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that what the pages point to exists: links to files and to headings, and `paths/of/files` in code spans.

    scripts/check_docs.py            # every Markdown page that git knows; one line for each fault, status 1 if there is one
"""
import os
import re
import subprocess
import sys

FOLDERS = "bench|cmake|docs|examples|fuzz|include|models|python|scripts|src|tests|training"


def headings(page):
    """The anchors of a page's headings, as GitHub forms them."""
    with open(page, encoding="utf-8") as lines:
        titles = [m[1] for m in (re.match(r"#+\s+(.*)", line) for line in lines) if m]
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in titles}


def faults_of(page):
    with open(page, encoding="utf-8") as file:
        text = re.sub(r"```.*?```", "", file.read(), flags=re.S)
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"(https?|mailto):", link):
            continue
        path, _, anchor = link.partition("#")
        target = os.path.normpath(os.path.join(os.path.dirname(page), path)) if path else page
        if not os.path.exists(target):
            yield f"link to {link}: there is no such file"
        elif anchor and target.endswith(".md") and anchor not in headings(target):
            yield f"link to {link}: the page has no such heading"
    for path in re.findall(rf"`((?:{FOLDERS})/[\w./-]+)`", text):
        if not any(part in path for part in ("NAME", "...")) and not os.path.exists(path):
            yield f"`{path}`: there is no such file"


def main():
    os.chdir(subprocess.run(["git", "rev-parse", "--show-toplevel"], check=True, capture_output=True, text=True).stdout.strip())
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"]
    pages = [p for p in subprocess.run(command, check=True, capture_output=True, text=True).stdout.split() if os.path.exists(p)]
    faults = [f"{page}: {fault}" for page in pages for fault in faults_of(page)]
    print("\n".join(faults + [f"{len(pages)} pages, {len(faults)} faults"]))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
