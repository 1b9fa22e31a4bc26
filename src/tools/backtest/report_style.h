// SPDX-License-Identifier: Apache-2.0
// The look of the page, and its parts before the script fills them.
#pragma once

#include <string_view>

namespace toto::backtest {

inline constexpr std::string_view kReportStyle = R"(
:root{--bg:#fff;--ink:#181d27;--faint:#636b78;--line:#e3e6ea;--panel:#f6f7f9;--model:#0b57d0;
--actual:#d9480f;--last:#868e96;--season:#2b8a3e;--drift:#7048e8;--good:#2b8a3e;--bad:#c92a2a;
--b0:#e3edfc;--b1:#c5daf8;--b2:#9dc0f2;--warn:#ffecb3;--warnink:#7a4600}
@media (prefers-color-scheme:dark){:root{--bg:#16181d;--ink:#e8eaee;--faint:#9ba2ae;--line:#30343c;
--panel:#1e2127;--model:#6aa9ff;--actual:#ff9248;--last:#adb5bd;--season:#69db7c;--drift:#b197fc;
--good:#69db7c;--bad:#ff8787;--b0:#1d2a3f;--b1:#233a5e;--b2:#2c4d80;--warn:#523a0a;--warnink:#ffdc96}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:1200px;padding:20px 24px 60px;background:var(--bg);color:var(--ink);
font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif}
h1{font-size:24px;margin:0 0 2px}h2{font-size:18px;margin:34px 0 6px}
p{margin:4px 0}p,li,dd,figcaption{overflow-wrap:anywhere}.faint{color:var(--faint);font-size:13px}
.warn{background:var(--warn);color:var(--warnink);padding:6px 10px;border-radius:6px;margin:10px 0}
.cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(200px,1fr));gap:12px;margin:16px 0}
.card{background:var(--panel);border-radius:8px;padding:12px 14px}
.card b{display:block;font-size:24px;line-height:1.25;font-variant-numeric:tabular-nums}
.card span{color:var(--faint);font-size:13px;display:block}
.scroll{overflow-x:auto}
table{border-collapse:collapse;width:100%;font-size:13px;font-variant-numeric:tabular-nums}
th,td{padding:5px 6px;text-align:right;border-bottom:1px solid var(--line);white-space:nowrap}
th{color:var(--faint);font-weight:600;position:sticky;top:0;background:var(--bg)}
th button{all:unset;cursor:pointer}th button:focus-visible{outline:2px solid var(--model)}
th[aria-sort=ascending] button::after{content:" \25B2"}
th[aria-sort=descending] button::after{content:" \25BC"}
td:first-child,td:nth-child(2),th:first-child,th:nth-child(2){text-align:left}
#summary tbody tr{cursor:pointer}#summary tbody tr:hover{background:var(--panel)}
#summary tr.chosen{background:var(--b0)}
.good{color:var(--good)}.bad{color:var(--bad)}
.controls{display:flex;flex-wrap:wrap;gap:10px;align-items:center;margin:8px 0}
select,button.step{font:inherit;font-size:14px;padding:4px 8px;border:1px solid var(--line);
border-radius:6px;background:var(--bg);color:var(--ink)}
input[type=range]{flex:1;min-width:160px;accent-color:var(--model)}
.grid{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(360px,100%),1fr));gap:18px}
select{max-width:100%}figure{margin:0;min-width:0;background:var(--panel);border-radius:8px;padding:10px 12px}
figcaption{font-weight:600;font-size:14px;margin-bottom:2px}
svg{display:block;width:100%;height:auto;overflow:visible}
svg text{fill:var(--faint);font-size:11px}
.read{font-size:12px;color:var(--faint);min-height:1.6em;font-variant-numeric:tabular-nums}
.legend{display:flex;flex-wrap:wrap;gap:4px 14px;font-size:12px;color:var(--faint)}
.legend i{display:inline-block;width:16px;height:0;border-top:2.5px solid;vertical-align:middle;
margin-right:5px}.legend i.band{height:10px;border:0}
details{margin:8px 0}summary{cursor:pointer}
dl{display:grid;grid-template-columns:max-content 1fr;gap:2px 14px;font-size:13px}dt{font-weight:600}
dd{margin:0;color:var(--faint)}
@media (max-width:600px){dl{grid-template-columns:1fr}body{padding:12px}}
)";

inline constexpr std::string_view kReportBody = R"(<header><h1>Backtest</h1><p id="what"></p>
<p id="how" class="faint"></p><div id="synthetic"></div></header>
<section id="cards" class="cards"></section>
<section id="summary-part"><h2>Summary</h2>
<p class="faint">Click a heading to sort, a row to see its pictures below. <span id="left-out"></span></p>
<div class="scroll"><table id="summary"><thead></thead><tbody></tbody></table></div></section>
<h2>What was said, and what happened</h2>
<p class="faint" id="fans-left-out"></p>
<div class="controls"><select id="series" aria-label="series"></select>
<button class="step" id="before" aria-label="earlier window">&#9664;</button>
<input type="range" id="window" min="0" value="0" aria-label="window">
<button class="step" id="after" aria-label="later window">&#9654;</button></div>
<figure><figcaption id="fan-title"></figcaption><div id="fan"></div>
<div class="read" id="fan-read"></div><div class="legend" id="fan-legend"></div></figure>
<section id="measures-part"><h2 id="pictures">Errors and calibration</h2>
<div class="controls"><select id="measure" aria-label="measure">
<option value="mase">MASE</option><option value="return_mae">mean absolute error of returns, %</option>
<option value="wql">weighted quantile loss</option>
<option value="relative">MASE, the last value being 1</option></select></div>
<div class="grid"><figure><figcaption>Error by step</figcaption><div id="steps"></div>
<div class="read" id="steps-read"></div></figure>
<figure><figcaption>Calibration: share of bars at or below a quantile, minus its level (percentage points)</figcaption><div id="calibration"></div>
<div class="read" id="calibration-read"></div></figure></div>
<figure style="margin-top:18px"><figcaption>Error over time (MASE)</figcaption><div id="time"></div>
<div class="read" id="time-read"></div></figure>
<div class="legend" id="legend" style="margin-top:8px"></div></section>
<section id="trades"></section>
<h2>The data</h2><div id="findings"></div>
<details><summary>How to read this page</summary><dl>
<dt>MASE</dt><dd>absolute error / mean absolute seasonal difference of the context, or of the last
two seasons if it is shorter (without a season, the mean absolute move from bar to bar); comparable between symbols, lower is better</dd>
<dt>return error</dt><dd>|forecast &minus; actual| / |last known value|, in percent</dd>
<dt>WQL</dt><dd>weighted quantile loss: pinball losses of 19 levels over the sum of |actual|</dd>
<dt>coverage</dt><dd>share of bars inside the interval; an honest 80 % interval holds 80 % of them</dd>
<dt>direction</dt><dd>share of moves whose sign was right, with a 95 % interval (Wilson); 50 % is a
coin. Forecasts of windows that overlap are not independent</dd>
<dt>p</dt><dd>Diebold and Mariano's paired test, two-sided: how often a difference as large as this
one would come from luck alone. What begins at one time counts once, whatever the number of symbols;
with too few windows nothing is said</dd>
<dt>last value, seasonal, drift</dt><dd>what anybody could say: the last value, the value a season
ago, the line through the first and the last value of the context</dd></dl></details>
)";

}  // namespace toto::backtest
