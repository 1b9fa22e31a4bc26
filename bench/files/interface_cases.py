# SPDX-License-Identifier: Apache-2.0
"""What `toto` shows and takes, for the table "Interface" of cases.py: each case runs the program and measures the thing."""
import datetime
import fcntl
import json
import math
import os
import pathlib
import pty
import random
import re
import signal
import struct
import subprocess
import termios
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
NANO = ROOT / "models/toto-nano"
BLOCKS = "▁▂▃▄▅▆▇█"


def code_of(done):
    start, end = done.stderr.find("["), done.stderr.find("]")
    return f"error `{done.stderr[start + 1:end]}`" if 0 <= start < end else f"exit {done.returncode}"


def sales(toto, name="sales.csv"):
    rng = random.Random(1)
    rows = [f"{datetime.date(2024, 1, 1) + datetime.timedelta(t)},shop{s},{100 + 10 * math.sin(t * 0.9) + rng.gauss(0, 3):.1f}"
            for s in (1, 2) for t in range(200)]
    return toto.write(name, "day,branch,sold\n" + "\n".join(rows) + "\n")


def forecast(toto, *flags):
    return toto.run("forecast", sales(toto), "--id", "branch", "--values", "sold", "--horizon", 3, "--model", NANO, *flags)


def on_terminal(toto, columns, *arguments):
    """What the program writes on a terminal of so many columns."""
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(toto.folder)
        os.execv(str(toto.program), [str(toto.program), *map(str, arguments)])
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    out = b""
    while True:
        try:
            piece = os.read(terminal, 65536)
        except OSError:
            break
        if not piece:
            break
        out += piece
    os.waitpid(child, 0)
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", out.decode())
    return [line.rstrip("\r").split("\r")[-1] for line in text.split("\n")]


def percents(text):
    found = sorted(set(re.findall(r"(\d+(?:\.\d+)?) % (?:interval|band)", text)), key=float)
    return ", ".join(found) + " %" if found else "none"


def levels_shown(toto):
    """`--quantiles 0.05,0.95`: intervals that table and plot show"""
    done = forecast(toto, "--quantiles", "0.05,0.95", "--plot", "a.html")
    if done.returncode != 0:
        return code_of(done)
    page = (toto.folder / "a.html").read_text()
    return f"table {percents(done.stdout)}; plot {percents(page)}"


def level_flag(toto):
    """`--level 90`: columns of the result"""
    done = forecast(toto, "--level", "90", "--output", "-")
    return f"`{done.stdout.splitlines()[0]}`" if done.returncode == 0 else code_of(done)


def column_names(toto):
    """A table `day,branch,sold`: the first two columns of the result"""
    done = forecast(toto, "--output", "-")
    return "`" + ",".join(done.stdout.splitlines()[0].split(",")[:2]) + "`" if done.returncode == 0 else code_of(done)


def completion(toto):
    """`toto completion` for bash, zsh, fish: does the shell take it?"""
    told = []
    for shell in ("bash", "zsh", "fish"):
        done = toto.run("completion", shell)
        if done.returncode != 0:
            return code_of(done)
        told.append(f"{shell} {len(done.stdout.splitlines())} lines")
    script = toto.write("completion.bash", toto.run("completion", "bash").stdout)
    asked = f"source {script}; COMP_WORDS=(toto forecast --hor); COMP_CWORD=2; $(complete -p toto | sed 's/.*-F //; s/ .*//') toto; echo $COMPREPLY"
    done = subprocess.run(["bash", "-c", asked], capture_output=True, text=True, cwd=toto.folder)
    return f"{', '.join(told)}; bash completes --hor to {done.stdout.strip() or 'nothing'}"


def man_page(toto):
    """A page for man"""
    done = toto.run("help", "forecast", "--man")
    if done.returncode != 0:
        return code_of(done)
    return f"{len(done.stdout.splitlines())} lines, begins with `{done.stdout.split()[0]}`"


def help_word(toto):
    """`toto help forecast`"""
    done = toto.run("help", "forecast")
    same = done.stdout == toto.run("forecast", "--help").stdout
    return ("what `forecast --help` says" if same else "another text") if done.returncode == 0 else code_of(done)


def version_flag(toto):
    """`toto -V`"""
    done = toto.run("-V")
    return f"`{done.stdout.strip()}`" if done.returncode == 0 else code_of(done)


def help_order(toto):
    """`forecast --help`: its first five flags; lines with INPUT"""
    done = toto.run("forecast", "--help")
    flags = re.findall(r"^  (?:-\w, )?(--[\w-]+)", done.stdout, re.M)
    return f"{', '.join(flags[:5])}; line of --horizon {line_of(done.stdout, '--horizon')}; INPUT as a flag {done.stdout.count('  INPUT')} times"


def line_of(text, word):
    return next(i for i, line in enumerate(text.splitlines(), 1) if word in line)


def backtest_width(toto):
    """Widest row of the tables on a terminal of 50 columns: `forecast`, `backtest`"""
    told = []
    lines = on_terminal(toto, 50, "forecast", sales(toto), "--id", "branch", "--values", "sold", "--horizon", 3, "--model", NANO)
    told.append(max(len(line) for line in lines if "interval" in line or "…" in line))
    lines = on_terminal(toto, 50, "backtest", walk(toto, 0), "--windows", 12, "--model", NANO, "--out", "narrow")
    told.append(max(len(line) for line in lines if line.startswith(("  ", "all", "walk"))))
    return f"{told[0]}, {told[1]}"


def phone(toto):
    """A plot of six series in a window of 360 pixels: columns of drawings"""
    rng = random.Random(6)
    rows = "\n".join(f"{t}," + ",".join(f"{rng.gauss(10, 1):.2f}" for _ in range(6)) for t in range(80))
    done = toto.run("forecast", toto.write("six.csv", "t,a,b,c,d,e,f\n" + rows + "\n"), "--horizon", 8, "--model", NANO, "--plot", "six.html")
    if done.returncode != 0:
        return code_of(done)
    drawings = []
    for drawing in re.findall(r"<svg.*?</svg>", (toto.folder / "six.html").read_text(), re.S):
        width = float(re.search(r'viewBox="0 0 ([\d.]+)', drawing).group(1))
        font = min(map(float, re.findall(r'font-size[:=]"?\s*([\d.]+)', drawing)), default=0)
        drawings.append((width, font))
    if len(drawings) > 1:
        width, font = min(drawings)
        return f"a drawing of its own, {width:.0f} wide; its smallest text {font * 360 / max(width, 360):.1f} pixels"
    width, font = drawings[0]
    return f"that of wide windows, {width:.0f} wide; its smallest text {font * 360 / width:.1f} pixels"


def quiet_counters(toto):
    """`--quiet --counters`: lines on standard error"""
    for flags in (["forecast", "IN", "--quiet"], ["--quiet", "forecast", "IN"]):
        flags = [sales(toto) if one == "IN" else one for one in flags]
        done = toto.run(*flags, "--id", "branch", "--values", "sold", "--horizon", 3, "--model", NANO, "--counters")
        if done.returncode == 0:
            return f"{len([line for line in done.stderr.splitlines() if 'forecast' in line])}"
    return code_of(done)


def interrupted(toto):
    """Ctrl-C in the midst of a forecast of 1,200 series, then `--resume` again"""
    rng = random.Random(8)
    rows = [f"s{s},{t},{10 + math.sin(t / 3 + s) + rng.gauss(0, .1):.3f}" for s in range(1200) for t in range(64)]
    toto.write("many.csv", "unique_id,ds,y\n" + "\n".join(rows) + "\n")
    flags = ["forecast", "many.csv", "--horizon", "33", "--model", str(NANO), "--output"]
    if toto.run("forecast", "many.csv", "--horizon", 1, "--model", NANO, "--resume", "probe", "--output", "probe.csv").returncode != 0:
        keep = []
    else:
        keep = ["--resume", "kept"]
    began = time.monotonic()
    toto.run(*flags, "whole.csv")
    whole = time.monotonic() - began
    child = subprocess.Popen([str(toto.program), *flags, "parts.csv", *keep], cwd=toto.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    kept = toto.folder / "kept"
    while child.poll() is None and (not any(one.is_file() for one in kept.rglob("*")) if keep else time.monotonic() < began + 1.5 * whole):
        time.sleep(0.01)
    child.send_signal(signal.SIGINT)
    child.communicate()
    if not keep:
        return f"stopped with {child.returncode}; nothing is kept" if child.returncode != 0 else "was not stopped"
    if child.returncode == 0:
        return "was not stopped"
    files = sum(1 for one in (toto.folder / "kept").rglob("*") if one.is_file())
    toto.run(*flags, "parts.csv", *keep)
    same = (toto.folder / "parts.csv").read_bytes() == (toto.folder / "whole.csv").read_bytes()
    return f"stopped with {child.returncode}, {files} files kept; then {'the same bytes' if same else 'other bytes'}"


def walk(toto, which):
    rng, price, day, rows = random.Random(30 + which), 100.0, datetime.date(2020, 1, 1), []
    while len(rows) < 700:
        day += datetime.timedelta(1)
        if day.weekday() < 5:
            price *= math.exp(rng.gauss(0, 0.015))
            rows.append(f"{day},{price:.2f}")
    return toto.write(f"walk{which}.csv", "Date,Close\n" + "\n".join(rows) + "\n")


def tuned(toto):
    """`tune` for five random walks: of what it writes, how many are worse than the default on the later windows (by 1 %, 5 %)"""
    files = [walk(toto, which) for which in range(5)]
    done = toto.run("tune", *files, "--model", NANO, "--validation-windows", 40, "--test-windows", 40, "--output", "parameters.json")
    if done.returncode != 0:
        return code_of(done)
    found = json.loads((toto.folder / "parameters.json").read_text())["found"].values()
    ratios = [one["test_mase"] / one["default_test_mase"] for one in found]
    return f"{sum(r > 1.01 for r in ratios)}, {sum(r > 1.05 for r in ratios)} of {len(ratios)}; the worst {100 * (max(ratios) - 1):.0f} %"


def tune_notes(toto):
    """`tune` with odd data in several files: files that its notes name and that are not there"""
    for which in range(2):
        name = walk(toto, which)
        rows = (toto.folder / name).read_text().splitlines()
        del rows[300:304]  # a gap in each, so that the notes speak of several symbols
        rows.insert(350, rows[349])
        (toto.folder / name).write_text("\n".join(rows) + "\n")
    done = toto.run("tune", "walk0.csv", "walk1.csv", "--model", NANO, "--validation-windows", 12, "--test-windows", 12,
                    "--output", "parameters.json")
    said = done.stdout + done.stderr
    named = set(re.findall(r"[\w/.-]+\.(?:json|csv|html)", said))
    gone = sorted(name for name in named if not (toto.folder / name).exists())
    return f"{', '.join(gone) or 'none'} (of {len(named)} named)" if done.returncode == 0 else code_of(done)


def sparkline(toto):
    """A sparkline of 100 with noise of 1e-4: heights in it"""
    rng = random.Random(5)
    text = "ds,y\n" + "".join(f"{t},{100 + rng.gauss(0, 1e-4):.6f}\n" for t in range(200))
    done = toto.run("forecast", toto.write("in.csv", text), "--horizon", 8, "--model", NANO)
    line = next((line for line in done.stdout.splitlines() if any(block in line for block in BLOCKS)), "")
    return f"{len({c for c in line if c in BLOCKS})} of 8"


def minute_season(toto):
    """1-minute data with a daily season, default context: error of the seasonal baseline, beside that of the last value"""
    rng = random.Random(2)
    rows = [f"{1_700_000_040 + 60 * t},{100 + 50 * math.sin(t / 1440 * 2 * math.pi) + rng.gauss(0, 4):.2f}" for t in range(8000)]
    done = toto.run("backtest", toto.write("minute.csv", "ts,load\n" + "\n".join(rows) + "\n"), "--windows", 10, "--horizon", 120,
                    "--model", NANO, "--out", "minutes")
    if done.returncode != 0:
        return code_of(done)
    rows = json.loads((toto.folder / "minutes/summary.json").read_text())["metrics"]
    mae = {row["forecaster"]: row["mae"] for row in rows if row["symbol"] == "*" and row["step"] == 0}
    return f"{mae['seasonal_naive']:.1f}, {mae['last_value']:.1f}"


INTERFACE = {"levels": levels_shown, "level flag": level_flag, "names": column_names, "completion": completion, "man": man_page,
             "help": help_word, "version": version_flag, "help order": help_order, "width": backtest_width, "phone": phone,
             "quiet": quiet_counters, "interrupt": interrupted, "tune": tuned, "tune notes": tune_notes, "sparkline": sparkline,
             "season": minute_season}
