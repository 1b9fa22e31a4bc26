// SPDX-License-Identifier: Apache-2.0
// The page: sends a table, shows what comes back. Everything out of a file is shown as text.
"use strict";
const at = (id) => document.getElementById(id);
let table = null; // {name, body}; null: the example
let answer = null;
const urls = [];

function make(tag, text, className) {
  const one = document.createElement(tag);
  if (text !== undefined) one.textContent = text;
  if (className) one.className = className;
  return one;
}

function rows(head, body, caption) {
  const whole = make("table");
  whole.append(make("caption", caption));
  const line = whole.createTHead().insertRow();
  for (const title of head) {
    const cell = make("th", title);
    cell.scope = "col";
    line.append(cell);
  }
  const part = whole.createTBody();
  for (const row of body) {
    const next = part.insertRow();
    for (const value of row) {
      const number = typeof value === "number";
      next.append(make("td", number ? String(+value.toPrecision(Math.abs(value) < 1e5 ? 6 : 12)) : value ?? "", number ? "number" : ""));
    }
  }
  return whole;
}

function offer(id, text, type) {
  const url = URL.createObjectURL(new Blob([text], { type }));
  urls.push(url);
  return url;
}

function show(result, seconds) {
  answer = result;
  urls.splice(0).forEach((url) => URL.revokeObjectURL(url));
  const ids = result.series.map((s) => s.id).join(", ");
  at("title").textContent = `${result.holdout ? "The last" : "The next"} ${result.horizon} steps of ${ids}`;
  const chart = at("chart");
  chart.src = offer("svg", result.svg, "image/svg+xml");
  const last = result.series.map((s) => s.variates.map((v) => `${v.name}: median ${v.median.at(-1)} at ${s.ds.at(-1)}, ` +
    `80 % between ${v.lower.at(-1)} and ${v.upper.at(-1)}`).join("; ")).join("; ");
  chart.alt = `History and forecast of ${ids}. ${last}. The table "Numbers" has every step.`;
  const exact = result.series.map((s) => s.exact_steps);
  at("facts").textContent = `Model ${result.model}, seed ${result.seed}, toto ${result.version}, ${seconds.toFixed(2)} s. ` +
    `The first ${Math.min(...exact)} steps are exact, the others are from trajectories.`;
  at("csv").href = offer("csv", result.csv, "text/csv");
  at("json").href = offer("json", JSON.stringify(result.series, null, 1), "application/json");
  at("svg").href = chart.src;
  at("measures").replaceChildren();
  if (result.holdout) {
    at("measures").append(rows(["series", "coverage of 80 %", "MASE", "MASE of the last value"],
      result.series.map((s) => [s.id, s.holdout.coverage_80, s.holdout.mase, s.holdout.mase_naive]), "Held out"));
  }
  const read = result.read;
  at("read").replaceChildren(
    rows(["what", "found"], [["format", `${read.format} ${read.compression}`], ["rows", read.rows], ["time", read.time_format],
      ["order", read.order], ...result.series.map((s) => [s.id, `${s.steps} steps, ${s.interval}`])], "Table"),
    rows(["column", "role", "note"], read.columns.map((c) => [c.name, c.role, c.note]), "Columns"),
    ...read.warnings.map((w) => make("p", w)),
    ...read.errors.map((e) => make("p", `${e.id}: ${e.message}`, "error")));
  if (read.series_left_out) at("read").append(make("p", `${read.series_left_out} more series are not forecast here.`));
  at("numbers").replaceChildren(...result.series.flatMap((s) => s.variates.map((v) =>
    rows(["time", "10 %", "median", "90 %"], s.ds.map((d, i) => [d, v.lower[i], v.median[i], v.upper[i]]),
      s.variates.length > 1 ? `${s.id} / ${v.name}` : s.id))));
  at("result").hidden = false;
}

function showAnomalies(result) {
  const count = result.series.reduce((sum, s) => sum + s.anomalies.length, 0);
  const scored = result.series.reduce((sum, s) => sum + s.scored, 0);
  at("odd-title").textContent = `${count} anomalies among ${scored} observations (p at most ${result.threshold})`;
  at("odd-chart").src = offer("odd", result.svg, "image/svg+xml");
  at("odd-chart").alt = "Observations, the limits within which they were expected, and marks on the anomalies.";
  at("odd-points").replaceChildren(...result.series.filter((s) => s.anomalies.length).map((s) =>
    rows(["time", "value", "expected", "p"], s.anomalies.map((a) => [a.ds, a.value, a.median, a.p]),
      s.variate ? `${s.id} / ${s.variate}` : s.id)));
  at("odd").hidden = false;
}

/// Sends the table and shows what comes back.
async function ask(path, options, word, show) {
  at("state").className = "";
  at("state").textContent = word;
  document.body.setAttribute("aria-busy", "true");
  const query = new URLSearchParams({ name: table ? table.name : "", model: at("model").value, ...options });
  const begun = performance.now();
  try {
    const response = await fetch(`${path}?${query.toString().replaceAll("+", "%20")}`,
      { method: "POST", body: table ? table.body : "", headers: { "Content-Type": "application/octet-stream" } });
    const result = await response.json();
    if (!response.ok) throw new Error([result.error.where, result.error.message, result.error.remedy].filter(Boolean).join(": "));
    show(result, (performance.now() - begun) / 1000);
    at("state").textContent = table ? `Read ${table.name}.` : "An example: monthly sunspots.";
  } catch (error) {
    at("state").className = "error";
    at("state").textContent = error.message;
  } finally {
    document.body.removeAttribute("aria-busy");
    document.body.dataset.ready = "yes";
  }
}

async function forecast() {
  if (!at("form").reportValidity()) return;
  at("odd").hidden = true;
  await ask("/ui/forecast", { horizon: at("horizon").value, seed: at("seed").value, holdout: at("holdout").checked ? "1" : "0" },
    "Forecasting …", show);
}

function pasted() {
  if (at("text").closest("details").open && at("text").value.trim()) table = { name: "pasted", body: at("text").value };
}

function take(file) {
  table = { name: file.name, body: file };
  forecast();
}

function request() {
  const series = answer.series[0];
  const names = series.variates;
  const target = names[0].last.map((_, t) => names.map((v) => v.last[t]));
  return { model: answer.model, inputs: [{ item_id: series.id, target }],
    parameters: { prediction_length: answer.horizon, quantile_levels: [0.1, 0.5, 0.9], seed: answer.seed } };
}

async function copy(text) {
  let done = true;
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    done = false; // only pages of this machine or with TLS may
    at("text").value = text;
    at("text").closest("details").open = true;
  }
  at("state").className = "";
  at("state").textContent = done ? "Copied (with the last 64 steps)." : "Not allowed to copy: the text is in the field above.";
}

at("form").addEventListener("submit", (event) => {
  event.preventDefault();
  pasted();
  forecast();
});
at("anomalies").addEventListener("click", () => {
  pasted();
  ask("/ui/anomalies", {}, "Looking for anomalies …", showAnomalies);
});
at("file").addEventListener("change", () => at("file").files[0] && take(at("file").files[0]));
at("example").addEventListener("click", () => { table = null; at("text").value = ""; forecast(); });
at("holdout").addEventListener("change", forecast);
at("curl").addEventListener("click", () => copy(
  `curl ${location.origin}/v1/forecast -d '${JSON.stringify(request()).replaceAll("'", "'\\''")}'`));
at("python").addEventListener("click", () => copy(`import json, urllib.request

body = json.loads(r'''${JSON.stringify(request())}''')
request = urllib.request.Request("${location.origin}/v1/forecast", json.dumps(body).encode())
print(json.load(urllib.request.urlopen(request))["outputs"][0])
`));
for (const name of ["dragover", "dragleave", "drop"]) {
  document.addEventListener(name, (event) => {
    event.preventDefault();
    document.body.classList.toggle("over", name === "dragover");
    if (name === "drop" && event.dataTransfer.files[0]) take(event.dataTransfer.files[0]);
  });
}
document.addEventListener("paste", (event) => {
  if (event.target === at("text")) return;
  const text = event.clipboardData.getData("text");
  if (text) take(new File([text], "pasted"));
});
fetch("/v1/timeseries/models").then((r) => r.json()).then((names) => {
  at("model").replaceChildren(...names.map((n) => make("option", n)));
  forecast();
});
