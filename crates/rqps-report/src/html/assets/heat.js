// The overview: steps × targets, coloured by any metric.
const SIGNS = { SLOWER: "▼", FASTER: "▲", "SLOWER-SMALL": "▽", "FASTER-SMALL": "△", SAME: "=",
  INCONCLUSIVE: "?", "NO VERDICT": "·", WORSE: "▼", BETTER: "▲", "WORSE-SMALL": "▽",
  "BETTER-SMALL": "△" };
// Above this many compared targets names stand upright and verdicts are signs only.
const HEAT_WIDE = 5;
// Up to this many there is room for intervals in figures.
const HEAT_FEW = 2;
// Width of the interval bar under or beside a number, by how many there are in a row.
const barWidth = targets => targets <= HEAT_FEW ? 110 : targets <= HEAT_WIDE ? 64 : 44;

// Cells are [ratio, low, high, pairs, verdict, reason] for each metric, or null.
const verdictOf = (heat, metric, cell) =>
  cell && cell[4] != null ? heat.verdicts[metric === 0 ? 0 : 1][cell[4]] : "";

// How far the interval bars reach, as a logarithm: most of what there is, outliers at the edge.
function barReach(heat, metric) {
  const sizes = heat.steps.flatMap(step => step.c.slice(1).map(target => target.m[metric]))
    .filter(cell => cell && cell[0] > 0 && Number.isFinite(cell[0]))
    .map(cell => Math.abs(Math.log(cell[0]))).sort((a, b) => a - b);
  const most = sizes[Math.floor(sizes.length * 0.9)] ?? 0;
  return Math.min(Math.max(most * 1.5, Math.log(1.1)), Math.log(8));
}

function intervalBar(cell, reach, wide) {
  const x = ratio => {
    const share = ratio > 0 ? Math.log(ratio) / reach : -1;
    return 2 + (wide - 4) * (Math.min(Math.max(share, -1), 1) + 1) / 2;
  };
  const [ratio, low, high] = cell;
  const range = low == null ? ""
    : `<line class="range" x1="${x(low).toFixed(1)}" x2="${x(high).toFixed(1)}" y1="5" y2="5"/>`;
  return `<svg width="${wide}" height="10" aria-hidden="true"><line class="zero" ` +
    `x1="${wide / 2}" x2="${wide / 2}" y1="0" y2="10"/>${range}` +
    `<circle class="dot" cx="${x(ratio).toFixed(1)}" cy="5" r="2.5"/></svg>`;
}

// Class and strength of the colour: by the verdict where there is one, else by the interval.
function tone(heat, metric, cell) {
  const verdict = verdictOf(heat, metric, cell);
  const clear = verdict ? /SLOWER|FASTER|WORSE|BETTER/.test(verdict)
    : cell[1] != null && (cell[1] > 1 || cell[2] < 1);
  if (!clear || heat.metrics[metric].up === null) return ["", 0];
  const ln = Number.isFinite(cell[0]) && cell[0] > 0 ? Math.log(cell[0]) : Math.log(4);
  const better = (ln > 0) === heat.metrics[metric].up;
  const strength = 12 + 46 * Math.min(Math.abs(ln) / Math.log(2), 1);
  return [better ? "better" : "worse", Math.round(strength)];
}

const ratioText = ratio => Number.isFinite(ratio) ? ratio.toFixed(ratio >= 10 ? 1 : 2) : "inf";

function describe(heat, step, target, metric) {
  const cell = step.c[target].m[metric];
  const interval = cell[1] == null ? "no interval"
    : `[${cell[1].toFixed(3)}, ${cell[2].toFixed(3)}]`;
  const verdict = verdictOf(heat, metric, cell);
  return `${step.n}, ${heat.targets[target]}: ${heat.metrics[metric].n} × ` +
    `${Number.isFinite(cell[0]) ? cell[0].toFixed(3) : "inf"} ${interval}, ${cell[3]} pairs` +
    (verdict ? `, ${verdict}` : "");
}

function fillCell(heat, td, step, target, metric, reach) {
  const cell = step.c[target].m[metric];
  td.className = "t";
  td.style.removeProperty("--a");
  td.dataset.v = cell ? (Number.isFinite(cell[0]) ? cell[0] : 1e300) : "";
  if (!cell) {
    const why = step.c[target].x || "no comparison";
    td.classList.add("plain", "n", "none");
    td.textContent = why === "failed" ? "failed" : "–";
    td.title = why;
    return;
  }
  td.removeAttribute("title");
  const [kind, strength] = tone(heat, metric, cell);
  if (kind) {
    td.classList.add(kind);
    td.style.setProperty("--a", `${strength}%`);
  }
  const verdict = verdictOf(heat, metric, cell);
  const wide = heat.targets.length - 1 <= HEAT_WIDE;
  const sign = SIGNS[verdict] ?? "";
  const button = make("button", { type: "button", tabindex: -1, class: "cell",
    "aria-label": describe(heat, step, target, metric), title: describe(heat, step, target, metric) });
  const said = verdict ? `<span class="v">${sign}${wide ? ` <span class="word">${verdict}</span>` : ""}</span>` : "";
  const few = heat.targets.length - 1 <= HEAT_FEW && cell[1] != null;
  const range = few ? ` <span class="ci">[${cell[1].toFixed(2)}, ${cell[2].toFixed(2)}]</span>` : "";
  button.innerHTML = `${said}${ratioText(cell[0])}${range}${intervalBar(cell, reach, barWidth(heat.targets.length - 1))}`;
  td.replaceChildren(button);
}

function fill(heat, table, metric) {
  const reach = barReach(heat, metric);
  for (const row of table.tBodies[0].rows) {
    const step = heat.steps[row.dataset.step];
    const base = step.c[0].a[metric];
    row.cells[2].textContent = text(base);
    row.cells[2].dataset.v = base ?? "";
    row.cells[3].textContent = metric === 0 ? step.u : heat.metrics[metric].u;
    for (let target = 1; target < heat.targets.length; target++) {
      fillCell(heat, row.cells[target + 3], step, target, metric, reach);
    }
  }
  const first = $("button.cell", table);
  if (first) first.tabIndex = 0;
  return reach;
}

function heatTable(heat) {
  const upright = heat.targets.length - 1 > HEAT_WIDE;
  const heads = ["step", "group", `${heat.targets[0]} (baseline)`, "unit", ...heat.targets.slice(1)];
  const head = make("tr", {}, ...heads.map((name, place) =>
    make("th", { scope: "col", class: upright && (place > 3 || place === 2) ? "up" : place === 2 ? "n" : "" }, name)));
  const rows = heat.steps.map((step, place) => make("tr", { "data-step": place, "data-g": step.g },
    make("th", { scope: "row" }, make("a", { href: `#${step.h}` }, step.n)),
    make("td", { class: "plain" }, step.g), make("td", { class: "plain n" }),
    make("td", { class: "plain" }), ...heat.targets.slice(1).map(() => make("td"))));
  const table = make("table", {}, make("caption", { class: "noprint" }),
    make("thead", {}, head), make("tbody", {}, ...rows));
  sortable(table);
  return table;
}

// Blocks in rows: what the base did, what the target did, where both are written down.
function showCell(heat, place, target, metric) {
  const step = heat.steps[place];
  const cell = step.c[target].m[metric];
  const measure = heat.metrics[metric];
  const unit = metric === 0 ? step.u : measure.u;
  const verdict = verdictOf(heat, metric, cell);
  const sides = [0, target].map(side => {
    const rows = step.c[side].s.map(sample => make("tr", {},
      make("td", {}, runLink(sample[0], `/steps/${encodeURIComponent(step.f[sample[1]])}.json`)),
      make("td", { class: "n" }, text(sample[2][metric], 6)),
      make("td", {}, runLink(sample[0], `/steps/${encodeURIComponent(step.f[sample[1]])}.csv`,
        "per second"))));
    const table = make("table", {}, make("caption", {},
      `${heat.targets[side]}${side === 0 ? " (baseline)" : ""}: median ${text(step.c[side].a[metric], 5)} ${unit}`),
    make("thead", {}, make("tr", {}, make("th", { scope: "col" }, "run"),
      make("th", { scope: "col", class: "n" }, `${measure.n}${unit ? ` (${unit})` : ""}`),
      make("th", { scope: "col" }, ""))), make("tbody", {}, ...rows));
    return make("div", { class: "scroll" }, table);
  });
  const parts = [make("p", {}, describe(heat, step, target, metric) + ".")];
  if (verdict && cell[5]) parts.push(make("p", {}, `${verdict}: ${cell[5]}.`));
  const more = make("a", { href: `#${step.h}`, onclick: () => $("#sources").close() },
    `Details of ${step.n}`);
  show(`${step.n}: ${heat.targets[target]}`, ...parts, ...sides, make("p", {}, more));
}

function heatKeys(table) {
  table.addEventListener("keydown", event => {
    const moves = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
    const move = moves[event.key];
    const td = event.target.closest("td");
    if (!move || !td) return;
    event.preventDefault();
    let row = td.parentElement;
    let column = td.cellIndex + move[1];
    if (move[0]) {
      do {
        row = move[0] < 0 ? row.previousElementSibling : row.nextElementSibling;
      } while (row && row.hidden);
    }
    const next = row && row.cells[column] && $("button.cell", row.cells[column]);
    if (!next) return;
    event.target.tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
  });
}

function heatTools(heat, table, state) {
  const status = make("span", { role: "status" });
  const filter = make("input", { type: "search", "aria-label": "Filter steps by name" });
  const groups = [...new Set(heat.steps.map(step => step.g))];
  const verdicts = [...new Set(heat.steps.flatMap(step =>
    step.c.slice(1).map(target => verdictOf(heat, 0, target.m[0]))))].filter(Boolean);
  const ordered = heat.verdicts[0].filter(word => verdicts.includes(word));
  const option = word => make("option", { value: word }, word);
  const verdict = make("select", {}, make("option", { value: "" }, "any"), ...ordered.map(option));
  const metric = make("select", {}, ...heat.metrics.map((measure, place) =>
    make("option", { value: place }, place === 0 ? "rate" : measure.n)));
  const apply = () => {
    const wanted = filter.value.toLowerCase();
    let shown = 0;
    for (const row of table.tBodies[0].rows) {
      const step = heat.steps[row.dataset.step];
      const said = step.c.slice(1).map(target => verdictOf(heat, 0, target.m[0]));
      const fits = (!state.group || step.g === state.group) &&
        step.n.toLowerCase().includes(wanted) && (!verdict.value || said.includes(verdict.value));
      row.hidden = !fits;
      shown += fits;
    }
    status.textContent = `${shown} of ${heat.steps.length} steps`;
  };
  const buttons = ["", ...groups].map(group => make("button", { type: "button",
    "aria-pressed": group === "" ? "true" : "false", onclick: event => {
      state.group = group;
      buttons.forEach(button => button.setAttribute("aria-pressed", button === event.currentTarget));
      apply();
    } }, group || "all"));
  filter.addEventListener("input", apply);
  verdict.addEventListener("change", apply);
  metric.addEventListener("change", () => state.show(Number(metric.value)));
  const tools = [make("span", { class: "set", role: "group", "aria-label": "Group" }, ...buttons),
    make("label", {}, "Filter ", filter), make("label", {}, "Colour by ", metric)];
  if (ordered.length > 1) tools.push(make("label", {}, "Rate is ", verdict));
  apply();
  return make("div", { class: "tools" }, ...tools, status);
}

function initHeat(place) {
  const heat = data(place.dataset.json);
  const table = heatTable(heat);
  const key = make("p", { class: "key" });
  const state = { group: "", metric: 0, show: metric => {
    state.metric = metric;
    const reach = fill(heat, table, metric);
    const [low, high] = [Math.exp(-reach), Math.exp(reach)].map(x => x.toFixed(2));
    const up = heat.metrics[metric].up;
    const better = up === null ? "neither direction" : up ? "above 1" : "below 1";
    key.textContent = `Target / baseline, ${better} is better. The bar ${heat.targets.length - 1 <= HEAT_FEW ? "beside" : "under"} a number runs from ${low} ` +
      `to ${high}: the vertical line marks 1, the dot the ratio, the line its interval. ` +
      "Orange is worse, blue is better; no colour means no demonstrated difference. " +
      (heat.judged ? "▼ slower, ▲ faster, ▽ △ the same but small, = same, ? inconclusive, · no verdict. " : "") +
      "Select a number to see its runs.";
  } };
  if (heat.targets.length - 1 > HEAT_WIDE) {
    const names = [`${heat.targets[0]} (baseline)`, ...heat.targets.slice(1)];
    const longest = Math.max(...names.map(name => textWidth(name, 14, 600)));
    place.classList.add("many");
    place.style.setProperty("--up", `${Math.ceil(longest) + 34}px`);
  }
  if (heat.targets.length - 1 <= HEAT_FEW) place.classList.add("few");
  table.addEventListener("click", event => {
    const td = event.target.closest("td");
    if (!td || !event.target.closest("button.cell")) return;
    showCell(heat, td.parentElement.dataset.step, td.cellIndex - 3, state.metric);
  });
  heatKeys(table);
  state.show(0);
  const scroll = make("div", { class: "scroll", role: "region", tabindex: 0,
    "aria-label": "Steps by targets" }, table);
  place.replaceChildren(heatTools(heat, table, state), key, scroll);
}
