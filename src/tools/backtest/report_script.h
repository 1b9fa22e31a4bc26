// SPDX-License-Identifier: Apache-2.0
// The script of the page: tables, and pictures as SVG. Text from outside is only ever set as text.
#pragma once

#include <string_view>

namespace toto::backtest {

inline constexpr std::string_view kReportScript = R"JS('use strict';
const D = JSON.parse(document.getElementById('data').textContent);
const $ = id => document.getElementById(id);
const NAMES = ['toto', 'last value', 'seasonal', 'drift'];
const COLOURS = ['var(--model)', 'var(--last)', 'var(--season)', 'var(--drift)'];
const SVG = 'http://www.w3.org/2000/svg';
const num = (x, d) => x === null || x === undefined ? '–' : x.toFixed(d);
const short = x => x === null ? '–' : Math.abs(x) >= 1000 ? x.toFixed(0) : String(+x.toPrecision(4));
const all = x => x === '*' ? 'all' : x;

function node(name, attributes, text) {
  const e = document.createElement(name);
  for (const k in attributes || {}) e.setAttribute(k, attributes[k]);
  if (text !== undefined) e.textContent = text;
  return e;
}
function draw(parent, name, attributes, text) {
  const e = document.createElementNS(SVG, name);
  for (const k in attributes) e.setAttribute(k, attributes[k]);
  if (text !== undefined) e.textContent = text;
  parent.appendChild(e);
  return e;
}
function ticks(low, high, count) {
  const raw = (high - low) / count, power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].map(f => f * power).find(s => s >= raw) || raw;
  const found = [];
  for (let x = Math.ceil(low / step) * step; x <= high + step * 1e-9; x += step) {
    found.push(+x.toPrecision(12));
  }
  return found;
}

// A picture of lines over positions 0..n-1. options: width, height, labels [n], lines [{values,
// colour, width, dash, name}], bands [{low, high, colour}], mark (a position), low, high.
function chart(where, read, o) {
  const W = o.width, H = o.height, left = 52, right = 12, top = 8, bottom = 24;
  where.textContent = '';
  const n = o.labels.length;
  let values = o.lines.flatMap(l => l.values);
  for (const b of o.bands || []) values = values.concat(b.low, b.high);
  values = values.filter(v => v !== null && v !== undefined);
  if (values.length === 0) {
    where.appendChild(node('p', {class: 'faint'}, 'There is nothing to draw: none of it is defined here.'));
    read.textContent = '';
    return;
  }
  const svg = draw(where, 'svg', {viewBox: `0 0 ${W} ${H}`, role: 'img'});
  let low = o.low !== undefined ? o.low : Math.min(...values);
  let high = o.high !== undefined ? o.high : Math.max(...values);
  if (!(high > low)) { high = low + Math.max(1, Math.abs(low) * 0.1); low -= high - low; }
  const pad = o.low === undefined ? (high - low) * 0.05 : 0;
  if (o.low === undefined) low -= pad;
  if (o.high === undefined) high += pad || (high - low) * 0.05;
  const x = i => left + (n < 2 ? 0.5 : i / (n - 1)) * (W - left - right);
  const y = v => top + (high - v) / (high - low) * (H - top - bottom);
  for (const t of ticks(low, high, 5)) {
    draw(svg, 'line', {x1: left, x2: W - right, y1: y(t), y2: y(t), stroke: 'var(--line)'});
    draw(svg, 'text', {x: left - 6, y: y(t) + 4, 'text-anchor': 'end'}, short(t));
  }
  const wanted = Math.max(2, Math.floor((W - left) / (o.spacing || 90)));
  const every = Math.max(1, Math.ceil(n / wanted));
  for (let i = 0; i < n; i += every) {
    draw(svg, 'text', {x: x(i), y: H - 6, 'text-anchor': 'middle'}, o.labels[i]);
  }
  if (o.mark !== undefined) {
    draw(svg, 'line', {x1: x(o.mark), x2: x(o.mark), y1: top, y2: H - bottom, stroke: 'var(--faint)',
                       'stroke-dasharray': '2 3'});
  }
  for (const b of o.bands || []) {
    const points = [];
    for (let i = 0; i < n; i++) if (b.high[i] !== null && b.high[i] !== undefined) points.push(`${x(i)},${y(b.high[i])}`);
    for (let i = n; i-- > 0;) if (b.low[i] !== null && b.low[i] !== undefined) points.push(`${x(i)},${y(b.low[i])}`);
    draw(svg, 'polygon', {points: points.join(' '), fill: b.colour, class: 'band'});
  }
  for (const l of o.lines) {
    let path = '', pen = false;
    for (let i = 0; i < n; i++) {
      const v = l.values[i];
      if (v === null || v === undefined) { pen = false; continue; }
      path += `${pen ? 'L' : 'M'}${x(i).toFixed(1)} ${y(v).toFixed(1)}`;
      pen = true;
    }
    draw(svg, 'path', {d: path, fill: 'none', stroke: l.colour, 'stroke-width': l.width || 1.6,
                       'stroke-dasharray': l.dash || 'none', 'stroke-linejoin': 'round',
                       'stroke-linecap': 'round'});
    if (l.dots || l.values.filter(v => v !== null && v !== undefined).length === 1) {
      l.values.forEach((v, i) => v !== null && v !== undefined &&
        draw(svg, 'circle', {cx: x(i), cy: y(v), r: 3, fill: l.colour}));
    }
  }
  const cursor = draw(svg, 'line', {y1: top, y2: H - bottom, stroke: 'var(--faint)', visibility: 'hidden'});
  const show = event => {
    const box = svg.getBoundingClientRect();
    const at = (event.clientX - box.left) / box.width * W;
    const i = Math.max(0, Math.min(n - 1, Math.round((at - left) / (W - left - right) * (n - 1))));
    cursor.setAttribute('x1', x(i));
    cursor.setAttribute('x2', x(i));
    cursor.setAttribute('visibility', 'visible');
    read.textContent = (o.reading || o.labels)[i] + '   ' + o.lines.filter(l => l.name)
      .filter(l => l.values[i] !== null && l.values[i] !== undefined)
      .map(l => `${l.name} ${short(l.values[i])}`).join('   ');
  };
  svg.addEventListener('pointermove', show);
  svg.addEventListener('pointerleave', () => { cursor.setAttribute('visibility', 'hidden'); });
}

function header() {
  const symbols = D.symbols_of, o = D.options;
  $('what').textContent = `${D.model.name} on ${symbols} symbol${symbols === 1 ? '' : 's'}: ` +
    `${D.contexts.requested} forecasts, ${o.rolling === 'one-step' ? 'one bar ahead, windows' : 'windows'} of ` +
    `${o.horizon} bar${o.horizon === 1 ? '' : 's'}, ${D.groups.length ? D.groups[0].totals[0].count : 'no'} bars measured`;
  const p = D.symbols[0].parameters;
  const same = D.symbols.every(s => JSON.stringify(s.parameters) === JSON.stringify(p));
  $('how').textContent = (same ? `context ${p.context}, transform ${p.transform}, input scale ` +
    `${p.input_scale}, point forecast: ${p.aggregate}, ${p.samples} samples beyond what is exact; ` :
    'parameters by symbol (summary.json); ') + `stride ${o.stride}, seed ${o.seed}; weights ` +
    `${D.model.weights.slice(0, 12)}, ${D.model.precision}, ${D.model.mode}`;
  if (D.model.synthetic) {
    $('synthetic').appendChild(node('p', {class: 'warn'},
      'The weights are synthetic: these forecasts mean nothing.'));
  }
  const e = D.input_scale_effect;
  if (e.contexts > 0) {
    $('how').appendChild(node('br'));
    $('how').appendChild(document.createTextNode(
      `Input scale: at 1, ${num(100 * e.swamped_at_one, 0)} % of ${e.contexts} contexts lie below the ` +
      `model's smallest scale and its 80 % intervals are ${num(e.width_80_at_one, 2)} % wide; as used ` +
      `${num(100 * e.swamped_at_scale, 0)} % and ${num(e.width_80_at_scale, 2)} %.`));
  }
}

function verdict(test) {
  if (test && test.origins < test.origins_needed) return ['too few windows', ''];
  if (!test || test.p_value === null) return ['–', ''];
  if (test.p_value >= 0.05) return ['no difference', ''];
  return test.statistic < 0 ? ['better', 'good'] : ['worse', 'bad'];
}

const chance = p => p === null ? '–' : p < 0.001 ? '< 0.001' : '= ' + num(p, 3);

function cards(g) {
  const t = g.totals, m = t[0], v = verdict(m.against.last_value);
  const add = (big, small, klass) => {
    const card = node('div', {class: 'card'});
    card.appendChild(node('b', {class: klass || ''}, big));
    for (const line of small) card.appendChild(node('span', {}, line));
    $('cards').appendChild(card);
  };
  $('cards').textContent = '';
  const test = m.against.last_value, few = test.origins < test.origins_needed;
  add(v[0], [`${few ? 'for a test against' : v[1] ? 'than' : 'to'} the last value, ` +
    `${all(g.symbol)}${g.target === '*' ? '' : ' / ' + g.target}`,
    few ? `${test.origins} origins, ${test.origins_needed} are needed` :
      `p ${chance(test.p_value)} over ${test.origins} origins`], v[1]);
  add(num(m.mase, 3), ['MASE', `last value ${num(t[1].mase, 3)}, seasonal ${num(t[2].mase, 3)}, drift ${num(t[3].mase, 3)}`]);
  add(num(m.return_mae, 2) + ' %', ['mean absolute error of returns',
    `last value ${num(t[1].return_mae, 2)} %, drift ${num(t[3].return_mae, 2)} %`]);
  add(num(100 * m.coverage_80, 1) + ' %', ['of bars inside 80 % intervals',
    `last value ${num(100 * t[1].coverage_80, 1)} %, widths ${num(m.width_80, 2)} and ${num(t[1].width_80, 2)} %`]);
  add(num(100 * m.direction, 1) + ' %', ['of moves had the right sign',
    `95 % interval ${num(100 * m.direction_low, 1)} to ${num(100 * m.direction_high, 1)}; drift ${num(100 * t[3].direction, 1)} %`]);
}

const COLUMNS = [
  ['symbol', g => all(g.symbol)], ['target', g => all(g.target)],
  ['bars', g => g.totals[0].count, 0], ['MASE', g => g.totals[0].mase, 3],
  ['last value', g => g.totals[1].mase, 3], ['seasonal', g => g.totals[2].mase, 3],
  ['drift', g => g.totals[3].mase, 3], ['return err. %', g => g.totals[0].return_mae, 2],
  ['WQL %', g => g.totals[0].wql === null ? null : 100 * g.totals[0].wql, 3],
  ['last v. %', g => g.totals[1].wql === null ? null : 100 * g.totals[1].wql, 3],
  ['80 % cov.', g => 100 * g.totals[0].coverage_80, 1], ['width %', g => g.totals[0].width_80, 2],
  ['direct. %', g => g.totals[0].direction === null ? null : 100 * g.totals[0].direction, 1],
  ['p', g => g.totals[0].against.last_value.p_value, 3],
  ['v. last', g => verdict(g.totals[0].against.last_value)[0]]];
let sorted = null, descending = false, chosen = 0;

function summary() {
  const head = node('tr');
  COLUMNS.forEach((column, i) => {
    const th = node('th', sorted === i ? {'aria-sort': descending ? 'descending' : 'ascending'} : {});
    const button = node('button', {type: 'button', 'data-column': i}, column[0]);
    button.addEventListener('click', () => {
      descending = sorted === i ? !descending : false;
      sorted = i;
      summary();
    });
    th.appendChild(button);
    head.appendChild(th);
  });
  $('summary').tHead.replaceChildren(head);
  $('left-out').textContent = D.groups_of > D.groups.length ?
    `The first ${D.groups.length} of ${D.groups_of} groups; all of them are in metrics.csv.` : '';
  const rows = D.groups.map((g, i) => i);
  if (sorted !== null) {
    const get = i => COLUMNS[sorted][1](D.groups[i]);
    rows.sort((a, b) => {
      const x = get(a), y = get(b);
      if (x === null || y === null) return (x === null) - (y === null);
      const order = typeof x === 'string' ? x.localeCompare(y) : x - y;
      return descending ? -order : order;
    });
  }
  $('summary').tBodies[0].replaceChildren(...rows.map(i => {
    const g = D.groups[i], row = node('tr', {'data-group': i, tabindex: 0});
    if (i === chosen) row.className = 'chosen';
    COLUMNS.forEach((column, c) => {
      const v = column[1](g);
      const cell = node('td', {}, typeof v === 'string' ? v : num(v, column[2]));
      if (c === COLUMNS.length - 1) cell.className = verdict(g.totals[0].against.last_value)[1];
      row.appendChild(cell);
    });
    const choose = () => { chosen = i; summary(); pictures(); follow(g); };
    row.addEventListener('click', choose);
    row.addEventListener('keydown', event => { if (event.key === 'Enter') choose(); });
    return row;
  }));
}

function pictures() {
  const g = D.groups[chosen], measure = $('measure').value;
  cards(g);
  $('pictures').textContent = 'Errors and calibration: ' + all(g.symbol) +
    (g.target === '*' ? '' : ' / ' + g.target);
  const lines = values => values.map((v, s) =>
    ({values: v, colour: COLOURS[s], width: s === 0 ? 2.4 : 1.5, name: NAMES[s], dots: v.length <= 12}));
  const relative = measure === 'relative';
  const by = !relative ? g.steps[measure] : g.steps.mase.map(v => v.map((x, h) =>
    x === null || !(g.steps.mase[1][h] > 0) ? null : x / g.steps.mase[1][h]));
  chart($('steps'), $('steps-read'), {width: 540, height: 260, spacing: 40, low: relative ? undefined : 0, lines: lines(by).reverse(),
    labels: D.steps.map(String), reading: D.steps.map(h => `step ${h}`)});
  const ideal = {values: D.levels.map(() => 0), colour: 'var(--faint)', dash: '3 4', width: 1};
  chart($('calibration'), $('calibration-read'), {width: 540, height: 260, spacing: 40,
    labels: D.levels.map(l => num(l, 2)),
    reading: D.levels.map(l => `level ${num(l, 2)}: points above it`),
    lines: [ideal, ...g.below.map((b, s) => ({values: b.map((x, i) => x === null ? null : 100 * (x - D.levels[i])),
      colour: COLOURS[s], width: s === 0 ? 2.4 : 1.5, name: NAMES[s]})).reverse()]});
  chart($('time'), $('time-read'), {width: 1120, height: 250, low: 0, labels: g.time.times,
    lines: lines(g.time.mase).map(l => ({...l, dots: false})).reverse()});
}

function follow(g) {
  const at = D.fans.findIndex(f => (g.symbol === '*' || f.symbol === g.symbol) &&
    (g.target === '*' || f.target === g.target));
  if (at < 0 || g.symbol === '*') return;
  $('series').value = at;
  newSeries();
}

function newSeries() {
  const f = D.fans[$('series').value];
  $('window').max = f.windows.length - 1;
  $('window').value = f.windows.length - 1;
  fan();
}

function fan() {
  const f = D.fans[$('series').value], w = f.windows[+$('window').value];
  const labels = w.before.times.concat(w.times), history = w.before.values;
  const gap = new Array(history.length - 1).fill(null), last = w.last;
  const ahead = (values, join) => gap.concat([join ? last : null], values);
  const q = w.quantiles;
  chart($('fan'), $('fan-read'), {width: 1120, height: 360, labels, mark: history.length - 1,
    bands: [[0, 6, 'var(--b0)'], [1, 5, 'var(--b1)'], [2, 4, 'var(--b2)']].map(([l, h, colour]) =>
      ({low: ahead(q[l], true), high: ahead(q[h], true), colour})),
    lines: [{values: history, colour: 'var(--ink)', name: 'known'},
      ...w.baselines.map((b, i) => ({values: ahead(b, true), colour: COLOURS[i + 1], dash: '5 4', width: 1.4, name: NAMES[i + 1]})),
      {values: ahead(w.point, true), colour: COLOURS[0], width: 2.4, name: 'toto'},
      {values: ahead(q[1], false), colour: 'none', width: 0, name: '10 %'},
      {values: ahead(q[5], false), colour: 'none', width: 0, name: '90 %'},
      {values: ahead(w.actual, true), colour: 'var(--actual)', width: 2, name: 'happened'}]});
  $('fan-title').textContent = `${f.symbol} / ${f.target}: window ${+$('window').value + 1} of ` +
    `${f.windows.length}${f.of > f.windows.length ? ` (chosen from ${f.of})` : ''}, from ${w.before.times[history.length - 1]}` +
    (w.times.length < f.bars ? `; ${w.times.length} of its ${f.bars} bars are drawn` : '');
  const seen = w.actual.filter(a => a !== null).length;
  const inside = w.actual.filter((a, i) => a !== null && q[1][i] <= a && a <= q[5][i]).length;
  const error = v => v.reduce((sum, x, i) => w.actual[i] === null ? sum : sum + Math.abs(x - w.actual[i]), 0) / seen;
  $('fan-read').textContent = seen === 0 ? 'none of these bars was observed' :
    `${inside} of ${seen} bars inside the 80 % interval; mean absolute error ` +
    `toto ${short(error(w.point))}, ` + w.baselines.map((b, i) => `${NAMES[i + 1]} ${short(error(b))}`).join(', ');
}

function legends() {
  const add = (where, colour, text, band) => {
    const item = node('span'), mark = node('i', {class: band ? 'band' : '',
      style: band ? `background:${colour}` : `border-color:${colour}`});
    item.append(mark, text);
    where.appendChild(item);
  };
  if ($('legend')) {
    NAMES.forEach((name, s) => add($('legend'), COLOURS[s], name));
    add($('legend'), 'var(--faint)', 'perfectly calibrated');
  }
  const l = $('fan-legend');
  add(l, 'var(--ink)', 'known');
  add(l, 'var(--actual)', 'what happened');
  add(l, COLOURS[0], 'toto');
  for (let s = 1; s < 4; s++) add(l, COLOURS[s], NAMES[s]);
  add(l, 'var(--b2)', '50 %', true);
  add(l, 'var(--b1)', '80 %', true);
  add(l, 'var(--b0)', '90 % interval', true);
}

function rest() {
  if (D.trades.length > 0) {
    const s = $('trades');
    s.appendChild(node('h2', {}, 'Illustration: long, flat or short'));
    s.appendChild(node('p', {class: 'warn'}, 'An illustration, no advice: a position after the sign of each ' +
      'forecast, held to the end of its window, fees included; no spread, no slippage, no limits. Together: an equal part ' +
      'of the money for each symbol. The past is not the future.'));
    const table = node('table'), head = node('tr');
    if (D.trades.some(t => !t.yearly)) {
      s.appendChild(node('p', {}, 'The times are an index, which does not say how long a bar is: nothing is said per year.'));
    }
    const columns = [['symbol', t => all(t.symbol)], ['traded', t => t.target === '*' ? 'by symbol' : t.target],
      ['decisions', t => String(t.periods)],
      ['return %', t => num(t.total_return === null ? null : 100 * t.total_return, 1)],
      ['a year %', t => num(t.yearly_return === null ? null : 100 * t.yearly_return, 1)],
      ['volatility %', t => num(t.yearly_volatility === null ? null : 100 * t.yearly_volatility, 1)],
      ['Sharpe', t => num(t.sharpe, 2)], ['drawdown %', t => num(100 * t.drawdown, 1)],
      ['turnover', t => num(t.turnover, 2)], ['held: return %', t => num(100 * t.hold_return, 1)],
      ['held: Sharpe', t => num(t.hold_sharpe, 2)], ['fee', t => t.fee === null ? 'by symbol' : String(t.fee)]];
    for (const c of columns) head.appendChild(node('th', {}, c[0]));
    table.appendChild(node('thead')).appendChild(head);
    const body = table.appendChild(node('tbody'));
    for (const t of D.trades) {
      const row = body.appendChild(node('tr'));
      for (const c of columns) row.appendChild(node('td', {}, c[1](t)));
    }
    s.appendChild(node('div', {class: 'scroll'})).appendChild(table);
  }
  const list = node('ul', {class: 'faint'});
  for (const e of D.errors) list.appendChild(node('li', {class: 'bad'}, `${e.symbol} was not evaluated: ${e.message}`));
  for (const s of D.symbols) {
    list.appendChild(node('li', {}, `${s.symbol}: ${s.bars} bars, ${s.first} to ${s.last}, ${s.interval}, ` +
      `${s.windows} windows, season ${s.season}` + (s.contexts_without_season === 0 ? '' :
      `; ${s.contexts_without_season} forecasts have no season before them: their MASE is scaled by moves from bar to bar`) +
      s.findings.map(f => `; ${f.message}`).join('')));
  }
  const more = D.symbols_of - D.symbols.length + D.errors_of - D.errors.length;
  if (more > 0) list.appendChild(node('li', {}, `and ${more} more, in summary.json`));
  $('findings').appendChild(list);
}

D.fans.forEach((f, i) => $('series').appendChild(node('option', {value: i}, `${f.symbol} / ${f.target}`)));
$('series').addEventListener('change', newSeries);
$('window').addEventListener('input', fan);
$('before').addEventListener('click', () => { $('window').stepDown(); fan(); });
$('after').addEventListener('click', () => { $('window').stepUp(); fan(); });
$('measure').addEventListener('change', pictures);
if (D.fans_of > D.fans.length) {
  $('fans-left-out').textContent = `The first ${D.fans.length} of ${D.fans_of} symbols and targets; all of them are in forecasts.csv.`;
}
header();
if (D.groups.length === 0) {
  $('summary-part').replaceChildren(node('p', {class: 'warn', id: 'nothing'},
    'Not one of the bars that were forecast was observed, so nothing can be measured.'));
  $('measures-part').remove();
} else {
  summary();
  pictures();
}
legends();
newSeries();
rest();
document.body.dataset.ready = 'yes';
)JS";

}  // namespace toto::backtest
