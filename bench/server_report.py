# SPDX-License-Identifier: Apache-2.0
"""The section of a results page that server_load.py measured, and its place in page and JSON file."""
import json
import shlex

HEADING = "## toto serve under load"


def yes(holds):
    return "" if holds else " **(not met)**"


def command_of(setup, cores):
    """The command as a page shows it: with nothing that is of the machine alone."""
    flags = [f"--model {m}" for m in setup["model"] or ["models/toto-nano"]]
    flags += [f"--server-cores {setup['server_cores']}"] if setup["server_cores"] else []
    flags += [f"--device {setup['device']}"] if setup["device"] != "cpu" else []
    flags += [f"--clients {setup['clients']} --seconds {setup['seconds']:g} --rounds {setup['rounds']}"]
    flags += [f"--serve {shlex.quote(setup['serve'])}"] if setup["serve"] else []
    if (setup["context"], setup["horizon"]) != (512, 24):
        flags += [f"--context {setup['context']} --horizon {setup['horizon']}"]
    flags += [f'--samples {setup["samples"]} --beside "{setup["beside"]}"'] if setup["beside"] else []
    pinned = f"taskset -c {','.join(map(str, cores))} " if setup["server_cores"] else ""
    program = "build/release/toto" if setup["device"] == "cpu" else "build/cuda/toto"
    return f"{pinned}bench/server_load.py {program} " + " ".join(flags)


def rows_of(one, clients):
    """(what it is, the figure), the same rows for each model."""
    load, most, engine = {s: one[f"load_{s}"] for s in (30, 80)}, one["saturation"], one["engine"]
    alone = one["one_by_one"]
    pair = lambda part, name="": f"{part[name + 'p50_ms']:.2f}, {part[name + 'p99_ms']:.2f}"  # noqa: E731
    yield "`toto bench`, one series: ms", f"{engine['one']['median_ms']:.2f}"
    yield "one request after the other: added p50, p99, ms", pair(alone, "added_")
    yield "at 30 %: requests per second", f"{load[30]['rate']:.0f}"
    yield ("at 30 %: added p50 (at most 0.3), p99 (at most 1.5), ms",
           pair(load[30], "added_") + yes(load[30]["added_p50_ms"] <= 0.3 and load[30]["added_p99_ms"] <= 1.5))
    yield "at 80 %: requests per second", f"{load[80]['rate']:.0f}"
    yield "at 80 %: p50, p99, ms", pair(load[80])
    yield "at 80 %: p99 over p50 (at most 3)", f"{one['p99_over_p50_at_80']:.2f}" + yes(one["p99_over_p50_at_80"] <= 3)
    yield f"saturation, {clients} clients ({most['by']}): requests per second", f"{most['rate']:.0f}"
    yield "saturation: p50, p99, ms", pair(most)
    yield "saturation: series of a micro-batch, mean", f"{most['series_of_a_batch']:.1f}"
    yield "`toto bench` with as many series: per second", f"{engine['mean_batch']['rate']:.0f}"
    yield "saturation over that (at least 0.9)", f"{one['of_engine']:.2f}" + yes(one["of_engine"] >= 0.9)
    yield f"`toto bench` with {clients} series: per second", f"{engine['all_clients']['rate']:.0f}"
    yield "saturation over that", f"{one['of_engine_all_clients']:.2f}"
    yield "saturation over `toto bench` with one series", f"{one['of_one']:.2f}"
    yield ("generator's share of a core: one by one, 30 %, 80 %, saturation",
           ", ".join(f"{part['generator_cores']:.2f}" for part in (alone, load[30], load[80], most)))


def section(result):
    setup, models = result["setup"], result["models"]
    cores = ", ".join(map(str, result["generator_cores_allowed"]))
    first = next(iter(models.values()))
    machine = first["engine"]["one"]["machine"]
    lines = [HEADING, "", f"Commit {result['commit']}, {machine['isa']}, {machine['threads']} thread(s) for the engine, float32. "
             f"One series of {setup['context']} steps, {setup['horizon']} ahead, 3 quantile levels. Servers and `toto bench` on "
             f"core {setup['server_cores'] or 'any'}, the generator on core {cores}. Medians of {setup['rounds']} rounds of "
             f"{setup['seconds']:g} s each. Models named by a published architecture have synthetic weights.", "",
             f"    {command_of(setup, result['generator_cores_allowed'])}", "", "| | " + " | ".join(models) + " |", "|---|" + "---|" * len(models)]
    columns = [list(rows_of(one, setup["clients"])) for one in models.values()]
    for row in zip(*columns):
        lines.append(f"| {row[0][0]} | " + " | ".join(value for _, value in row) + " |")
    if "beside" in result:
        lines += ["", *beside_lines(result, first)]
    return "\n".join(lines) + "\n"


def beside_lines(result, first):
    b, setup = result["beside"], result["setup"]
    both = f"{b['one_client']['rate']:.2f} with one client, {b['saturation']['rate']:.2f} with {setup['clients']}"
    yield (f"Beside a FastAPI server over the official package (`bench/peers/fastapi_server.py`, {setup['samples']} trajectories, the "
           "first model, same cores, same run):")
    yield ""
    yield "| | requests per second | over FastAPI |"
    yield "|---|---|---|"
    yield f"| FastAPI and toto-ts | {both} | 1 |"
    yield (f"| toto serve | {first['saturation']['rate']:.0f} | {b['saturation_over_it']:.0f} x (at least 20)"
           f"{yes(b['saturation_over_it'] >= 20)} |")
    yield (f"| toto serve, {setup['samples']} trajectories drawn too | {first['sampled']['rate']:.0f} "
           f"| {b['sampled_over_it']:.0f} x |")


def write_results(stem, result):
    """Into STEM.md, in the place of the section of that name or at the end, and STEM.json."""
    page = stem.with_suffix(".md")
    text = page.read_text() if page.exists() else ""
    before, found, after = text.partition(HEADING + "\n")
    rest = after[after.index("\n## ") + 1:] if found and "\n## " in after else ""
    kept = before if found else (text.rstrip("\n") + "\n\n" if text else "")
    page.write_text(kept + section(result) + ("\n" + rest if rest else ""))
    data = stem.with_suffix(".json")
    everything = json.loads(data.read_text()) if data.exists() else {}
    everything["server_load"] = result
    data.write_text(json.dumps(everything, indent=1) + "\n")
