// SPDX-License-Identifier: Apache-2.0
// The page's own style and the script that reads out values under the pointer.
//
// Data of a panel: r plot rectangle, n that of the narrow drawing, y value range, d decimals, s 0
// steps / 1 dates / 2 times, x pixels and t times (differences) of the readable steps, history
// first; h history, f which of it was filled in; over the horizon m median, e mean, a actual, b
// [label, lower, upper] of each band.
#pragma once

#include <string_view>

namespace toto::plot {

inline constexpr std::string_view kPageStyle = R"css(
body{margin:0;background:#fff;font-family:Helvetica Neue,Helvetica,Arial,Liberation Sans,sans-serif}
svg{display:block;width:100%;height:auto;margin:0 auto}
.narrow{display:none}
@media (max-width:599px){.wide{display:none}.narrow{display:block}}
#tip{position:absolute;pointer-events:none;background:#fff;color:#181d27;border:1px solid #c3c8d1;
border-radius:5px;padding:6px 9px;font-size:12px;line-height:1.5;white-space:nowrap;
box-shadow:0 2px 8px rgba(0,0,0,.15);font-variant-numeric:tabular-nums}
#tip b{display:block}#tip span{float:right;margin-left:18px}
.cross{stroke:#636b78;stroke-width:1}.mark{fill:#0b57d0;stroke:#fff;stroke-width:1.5}
)css";

inline constexpr std::string_view kDarkPageStyle =
    "body{background:#16181d}#tip{background:#23262d;color:#e8eaee;border-color:#454b57}"
    ".mark{fill:#6aa9ff;stroke:#16181d}";

inline constexpr std::string_view kReadoutScript = R"js('use strict';
const panels = JSON.parse(document.getElementById('data').textContent);
const tip = document.getElementById('tip');
for (const p of panels) for (let i = 1; i < p.t.length; i++) p.t[i] += p.t[i - 1];

const number = (v, decimals) => {
  if (!Number.isFinite(v)) return v > 0 ? '\u221e' : '\u2212\u221e';
  const size = Math.abs(v);
  if (size !== 0 && (size < 1e-3 || size >= 1e15)) return v.toExponential(4);
  return v.toLocaleString('en-US', {minimumFractionDigits: decimals, maximumFractionDigits: decimals}).replace('-', '\u2212');
};
const when = (p, t) => {
  if (p.s === 0) return 'step ' + t;
  const iso = new Date(t).toISOString().replace('T', ' ');
  if (p.s === 1) return iso.slice(0, -14);
  return iso.slice(0, t % 1000 ? -1 : t % 60000 ? -5 : -8);
};
const nearest = (p, x) => {
  let best = 0;
  for (let i = 1; i < p.x.length; i++) {
    if (Math.abs(p.x[i] - x) < Math.abs(p.x[best] - x)) best = i;
  }
  return best;
};
const readings = (p, i) => {
  const k = i - p.h.length, rows = [];
  const add = (name, v) => { if (v !== null && v !== undefined) rows.push([name, number(v, p.d), v]); };
  if (k < 0) {
    add(p.f.includes(i) ? 'Filled in' : 'History', p.h[i]);
  } else {
    add('Median', p.m[k]);
    add('Mean', p.e[k]);
    add('Actual', p.a[k]);
    for (const [level, low, high] of p.b) {
      if (low[k] !== null && high[k] !== null) {
        rows.push([level, number(low[k], p.d) + ' \u2026 ' + number(high[k], p.d)]);
      }
    }
  }
  return rows;
};
const readout = (svg, rect) => {
  const make = (name, cls) => {
    const node = document.createElementNS('http://www.w3.org/2000/svg', name);
    node.setAttribute('class', cls);
    node.style.display = 'none';
    return svg.appendChild(node);
  };
  const cross = make('path', 'cross'), mark = make('circle', 'mark');
  const hide = () => {
    tip.hidden = true;
    cross.style.display = mark.style.display = 'none';
  };
  const show = event => {
    const box = svg.getBoundingClientRect(), scale = svg.viewBox.baseVal.width / box.width;
    const x = (event.clientX - box.left) * scale, y = (event.clientY - box.top) * scale;
    const p = panels.find(q => x >= q[rect][0] - 4 && x <= q[rect][2] + 4 && y >= q[rect][1] && y <= q[rect][3]);
    if (!p || p.x.length === 0) return hide();
    const r = p[rect], stretch = (r[2] - r[0]) / (p.r[2] - p.r[0]);  // x is of the wide drawing
    const i = nearest(p, p.r[0] + (x - r[0]) / stretch), rows = readings(p, i);
    if (rows.length === 0) return hide();
    const at = r[0] + (p.x[i] - p.r[0]) * stretch;
    cross.setAttribute('d', `M${at} ${r[1]}V${r[3]}`);
    cross.style.display = '';
    const share = (rows[0][2] - p.y[0]) / (p.y[1] - p.y[0]);
    mark.style.display = share >= 0 && share <= 1 ? '' : 'none';
    if (share >= 0 && share <= 1) {
      mark.setAttribute('cx', at);
      mark.setAttribute('cy', r[3] - share * (r[3] - r[1]));
      mark.setAttribute('r', 4);
    }
    tip.replaceChildren();
    tip.appendChild(document.createElement('b')).textContent = when(p, p.t[i]);
    for (const [name, value] of rows) {
      const line = tip.appendChild(document.createElement('div'));
      line.appendChild(document.createElement('span')).textContent = value;
      line.append(name);
    }
    tip.hidden = false;
    const right = event.clientX + 16 + tip.offsetWidth > document.documentElement.clientWidth;
    const left = right ? event.clientX - 16 - tip.offsetWidth : event.clientX + 16;
    tip.style.left = Math.max(4, left) + scrollX + 'px';
    tip.style.top = event.clientY + 12 + scrollY + 'px';
  };
  svg.addEventListener('pointermove', show);
  svg.addEventListener('pointerleave', hide);
};
readout(document.querySelector('.wide'), 'r');
readout(document.querySelector('.narrow'), 'n');
)js";

}  // namespace toto::plot
