// Charts: data from the page, options for ECharts, drawn when they come into view.
const CHARTS = new Map(); // plot element → its state
// Single quotes: saved charts have it inside double ones.
const FONT = "'Liberation Sans', 'Noto Sans', 'Segoe UI', Roboto, Arial, sans-serif";
const ROWS_MAX = 4; // more series become panels
const SHOWN_MAX = 6; // more names: two are shown until the reader asks for others
const PAPER = 690; // Pixels across a sheet of A4 or letter between its margins.
const PEN = document.createElement("canvas").getContext("2d");

function textWidth(words, size = 12, weight = 400) {
  PEN.font = `${weight} ${size}px ${FONT}`;
  return PEN.measureText(words).width;
}

function library() {
  if (!window.echarts) {
    const script = make("script");
    script.textContent = document.getElementById("chart-library").textContent;
    document.head.append(script);
  }
  return window.echarts;
}

const LIGHT = { ink: "#1a1d21", quiet: "#59616b", line: "#e3e6ea", ground: "#ffffff", base: "#8a929c",
  worse: "#d9480f", better: "#1971c2", off: "#9aa2ab" };
const DARK = { ink: "#e6e9ed", quiet: "#a3abb5", line: "#2c323a", ground: "#15181c", base: "#8a929c",
  worse: "#ff8a4c", better: "#5aa9f5", off: "#67707b" };
// Okabe and Ito's colours, which most colour-blind readers can tell apart, without the yellow.
const FEW = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#7f6bd6"];
// Steps of viridis: many targets are versions, and versions have an order.
const MANY = [[68, 1, 84], [71, 44, 122], [59, 81, 139], [44, 113, 142], [33, 144, 141],
  [39, 173, 129], [92, 200, 99], [170, 220, 50]];

function colour(slot, count, theme) {
  if (slot === 0) return theme.base;
  if (count <= FEW.length + 1) return FEW[(slot - 1) % FEW.length];
  // The dark end is lost on a dark ground, the light end on a light one.
  const [from, to] = theme === DARK ? [0.3, 1] : [0, 0.85];
  const at = (from + (to - from) * (slot - 1) / Math.max(count - 2, 1)) * (MANY.length - 1);
  const low = Math.min(Math.floor(at), MANY.length - 2);
  const mix = MANY[low].map((part, i) => Math.round(part + (MANY[low + 1][i] - part) * (at - low)));
  return `rgb(${mix.join(",")})`;
}

const escaped = words => String(words).replace(/[&<>"]/g, c => `&#${c.charCodeAt(0)};`);
const axisName = axis => axis.u ? `${axis.n} (${axis.u})` : axis.n;
const tail = quantile => -Math.log10(1 - quantile);
const TAILS = [[0, "0"], [tail(0.5), "50"], [1, "90"], [2, "99"], [3, "99.9"], [4, "99.99"]];

// A round number at or above `value`, of which a quarter or fifth is round too.
function roundUp(value) {
  if (!(value > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  const steps = [1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10];
  return steps.find(step => step * power >= value * 0.9999) * power;
}

// With one series there is nothing to tell apart, so colour can say which way it went.
function direction(series, place, theme) {
  const [low, high] = [series.lo && series.lo[place], series.hi && series.hi[place]];
  const said = series.t && series.t[place];
  if (said ? /SLOWER|WORSE/.test(said) : high != null && high < 1) return theme.worse;
  if (said ? /FASTER|BETTER/.test(said) : low != null && low > 1) return theme.better;
  return theme.base;
}

function tooltip(chart, series, place, theme) {
  const high = series.hi && series.hi[place];
  const low = series.lo && series.lo[place];
  const x = chart.x.c.length ? chart.x.c[series.x[place]]
    : chart.x.s === "tail" ? `p${text(series.x[place] * 100, 6)}`
    : `${chart.x.n} ${text(series.x[place], 5)} ${chart.x.u}`;
  const lines = [`<b>${escaped(series.n)}</b>`, escaped(x),
    `${escaped(chart.y.n)} ${series.k ? "≈ " : ""}<b>${text(series.y[place], 5)}</b> ${escaped(chart.y.u)}` +
      (low == null ? "" : ` [${text(low, 4)}, ${text(high, 4)}]`)];
  if (series.t && series.t[place]) lines.push(escaped(series.t[place]));
  const runs = series.R || (series.r && series.r[place]) || [];
  if (runs.length === 1) lines.push(escaped(RUNS[runs[0]][1]));
  else if (runs.length) lines.push(`${runs.length} runs`);
  return lines.join("<br>");
}

const common = (chart, theme) => ({
  animation: false, backgroundColor: "transparent",
  textStyle: { fontFamily: FONT, color: theme.ink },
  tooltip: { trigger: "item", confine: true, backgroundColor: theme.ground, borderColor: theme.quiet,
    textStyle: { color: theme.ink, fontSize: 12 },
    formatter: item => item.data && item.data.of !== undefined
      ? tooltip(chart, chart.series[item.data.of], item.data.at, theme) : "" },
});

const lineAxis = theme => ({ axisLine: { show: true, lineStyle: { color: theme.quiet } },
  axisTick: { show: false }, splitLine: { lineStyle: { color: theme.line } },
  axisLabel: { color: theme.quiet, fontSize: 11, hideOverlap: true } });

// Pieces of straight line: [[x, y], [x, y]] each, with gaps between.
const pieces = (list, style, more) => ({ type: "line", silent: true, symbol: "none", animation: false,
  connectNulls: false, lineStyle: style, z: 3, tooltip: { show: false },
  data: list.flatMap(piece => [...piece, [null, null]]), ...more });

const caps = (points, size, fill, more) => ({ type: "scatter", silent: true, symbol: "rect",
  symbolSize: size, itemStyle: { color: fill }, data: points, z: 4, animation: false,
  tooltip: { show: false }, ...more });

// ---- Panels: one for each category, targets across: a ladder of versions ----

function panelOption(chart, width, theme) {
  const names = chart.x.c;
  const labels = chart.series.map(series => series.n);
  const across = width >= 1000 ? 3 : width >= 640 ? 2 : 1;
  const rows = Math.ceil(names.length / across);
  const foot = Math.ceil(Math.max(...labels.map(label => textWidth(label, 11)))) + 14;
  // The axis of most panels; the few that go far beyond have one of their own, and say so.
  const tops = names.map((_, place) => Math.max(0, ...chart.series.flatMap(series => {
    const nth = series.x.indexOf(place);
    return nth < 0 || !Number.isFinite(series.y[nth]) ? [] : [series.y[nth]];
  }))).sort((a, b) => a - b);
  const least = Math.max(0, ...chart.rules.map(rule => rule[0]));
  const cut = roundUp(Math.max(tops[Math.floor((tops.length - 1) * 0.75)], least) * 1.05);
  const panel = 92, head = 28, gap = 26, left = 40;
  const columnWidth = (width - 8) / across;
  const option = { ...common(chart, theme), title: [], grid: [], xAxis: [], yAxis: [], series: [],
    legend: { show: false } };
  names.forEach((name, place) => {
    const column = place % across, row = Math.floor(place / across);
    // Names stand under the last panel of each column.
    const last = place + across >= names.length;
    const points = chart.series.flatMap((series, of) => {
      const nth = series.x.indexOf(place);
      return nth < 0 || !Number.isFinite(series.y[nth]) ? []
        : [{ of, nth, value: series.y[nth], low: series.lo && series.lo[nth],
          high: series.hi && series.hi[nth] }];
    });
    const most = Math.max(0, ...points.map(point => point.value));
    const own = most > cut;
    const end = own ? roundUp(most * 1.02) : cut;
    const x = column * columnWidth + left, y = 4 + row * (panel + head + gap);
    option.title.push({ text: own ? `${name} (axis to ${text(end)})` : name, left: column * columnWidth + 4, top: y, padding: 0,
      textStyle: { fontSize: 12, fontWeight: 600, color: theme.ink } });
    option.grid.push({ left: x, top: y + head, width: columnWidth - left - 14, height: panel,
      containLabel: false, outerBoundsMode: "none" });
    option.xAxis.push({ gridIndex: place, type: "value", min: -0.6, max: labels.length - 0.4,
      ...lineAxis(theme), splitLine: { show: false },
      axisLabel: { show: last, rotate: 90, fontSize: 11, color: theme.quiet, hideOverlap: false,
        customValues: labels.map((_, at) => at), formatter: value => labels[Math.round(value)] ?? "" } });
    option.yAxis.push({ gridIndex: place, type: "value", min: 0, max: end, interval: end / 2,
      ...lineAxis(theme), axisLine: { show: false },
      axisLabel: { color: theme.quiet, fontSize: 10, formatter: value => text(value, 3) } });
    const axes = { xAxisIndex: place, yAxisIndex: place };
    option.series.push(pieces(points.filter(p => p.low != null).map(p =>
      [[p.of, Math.max(p.low, 0)], [p.of, Math.min(p.high, end)]]),
    { width: 1.5, color: theme.quiet }, axes));
    option.series.push({ type: "line", ...axes, animation: false, symbol: "circle", symbolSize: 6,
      lineStyle: { width: 1, color: theme.quiet, opacity: 0.6 }, z: 5, showAllSymbol: true,
      data: points.map(p => ({ value: [p.of, p.value], of: p.of, at: p.nth,
        itemStyle: { color: colour(chart.series[p.of].s, labels.length + 1, theme) } })),
      markLine: { silent: true, symbol: "none", animation: false, label: { show: false },
        lineStyle: { color: theme.ink, width: 1, type: "solid", opacity: 0.7 },
        data: chart.rules.map(rule => ({ yAxis: rule[0] })) } });
  });
  return { height: rows * (panel + head + gap) - gap + foot + 10, option };
}

// ---- Lines and points over a number axis ----

function legendOf(chart, width, theme, slots) {
  const names = [...new Set(chart.series.map(series => series.n))];
  let rows = 1, x = 0;
  for (const name of names) {
    const wide = textWidth(name) + 18 + 5 + 12;
    if (x > 0 && x + wide > width) { rows++; x = 0; }
    x += wide;
  }
  const slot = new Map(chart.series.map(series => [series.n, series.s]));
  const selected = {};
  const kept = VIEW.get("shown")?.split("|").filter(name => names.includes(name)) ?? [];
  if (kept.length) {
    names.forEach(name => { selected[name] = kept.includes(name); });
  } else if (names.length > SHOWN_MAX) {
    names.forEach((name, place) => { selected[name] = place === 0 || place === names.length - 1; });
  }
  return { height: rows * 25 + 4, option: { type: "plain", top: 0, left: 4, itemGap: 10, itemWidth: 18,
    itemHeight: 10, textStyle: { color: theme.ink, fontSize: 12 }, selected, width,
    inactiveColor: theme.off, inactiveBorderColor: theme.off,
    data: names.map(name => ({ name, icon: "roundRect",
      itemStyle: { color: colour(slot.get(name), slots, theme) } })) } };
}

// Dates and versions: as many names as have room.
const NAMES_MAX = 20;

function namedAxis(axis, width, theme) {
  const names = axis.c, each = names.length <= NAMES_MAX;
  const widest = Math.ceil(Math.max(...names.map(name => textWidth(name, 11))));
  const turned = each && widest * names.length > width;
  return { foot: turned ? widest + 10 : 18, ...lineAxis(theme), type: "value", min: -0.5,
    max: names.length - 0.5, minInterval: 1, splitLine: { show: false },
    axisLabel: { ...lineAxis(theme).axisLabel, rotate: turned ? 90 : 0, hideOverlap: !turned,
      ...(each ? { customValues: names.map((_, at) => at) } : {}),
      formatter: value => Number.isInteger(value) ? names[value] ?? "" : "" } };
}

function numberAxis(axis, theme) {
  const shape = { ...lineAxis(theme), name: axisName(axis), nameLocation: "middle",
    nameTextStyle: { color: theme.quiet, fontSize: 11 } };
  const plain = value => text(value, 6);
  if (axis.s === "log" || axis.s === "log2") {
    return { ...shape, type: "log", logBase: axis.s === "log2" ? 2 : 10, axisLabel: { ...shape.axisLabel, formatter: plain } };
  }
  if (axis.s === "tail") {
    return { ...shape, type: "value", min: 0, splitLine: { show: false }, axisTick: { show: true,
      customValues: TAILS.map(([at]) => at) }, axisLabel: { ...shape.axisLabel,
      customValues: TAILS.map(([at]) => at),
      formatter: value => TAILS.find(([at]) => Math.abs(at - value) < 0.01)?.[1] ?? "" } };
  }
  return { ...shape, type: "value", scale: !axis.z, ...(axis.z ? { min: 0 } : {}),
    axisLabel: { ...shape.axisLabel, formatter: plain } };
}

// Seconds in which little was done are loud; what a server did meanwhile has its target's colour.
const spanStyle = (span, paint) => span[4]
  ? { color: "#d9480f", opacity: 0.22 } : { color: paint, opacity: 0.18 };

// Charts over time can be narrowed to a range of seconds, the same for all; the link keeps it.
const TIME_MIN = 20;

function timeRange(chart) {
  const count = chart.x.c.length;
  if (chart.form === "points" && count > NAMES_MAX) {
    const [from, to] = (VIEW.get("range") ?? "").split("-").map(Number);
    return to > from ? { startValue: from, endValue: Math.min(to, count - 1) } : { start: 0, end: 100 };
  }
  if (chart.form !== "lines" || chart.x.u !== "s" || chart.x.s !== "linear") return null;
  const last = Math.max(...chart.series.flatMap(one => one.x.slice(-1)));
  if (!(last >= TIME_MIN)) return null;
  const [from, to] = (VIEW.get("seconds") ?? "").split("-").map(Number);
  return to > from ? { startValue: from, endValue: Math.min(to, last) } : { start: 0, end: 100 };
}

function keepTimeRange(chart, view) {
  const zoom = view.getOption().dataZoom[0];
  const whole = zoom.start <= 0 && zoom.end >= 100;
  keepView(chart.x.c.length ? "range" : "seconds", whole ? null : `${Math.max(Math.round(zoom.startValue), 0)}-${Math.round(zoom.endValue)}`);
}

// Which names of the legend are shown, so that a link shows the same.
function keepShown(selected) {
  keepView("shown", Object.keys(selected).filter(name => selected[name]).join("|"));
}

// Values of y and changes at x that are marked across the chart.
// The marks whose labels have room beside each other, the largest changes first.
function labelled(chart, room) {
  const far = mark => Math.abs(Math.log(parseFloat(mark[1].slice(1))));
  const apart = room / Math.max(chart.x.c.length, 1), shown = [];
  for (const mark of [...(chart.marks ?? [])].sort((a, b) => far(b) - far(a))) {
    const half = other => (textWidth(mark[1], 10) + textWidth(other[1], 10)) / 2 + 4;
    if (shown.every(other => Math.abs(mark[0] - other[0]) * apart > half(other))) shown.push(mark);
  }
  return new Set(shown);
}

function marksOf(chart, of, paint, theme, named) {
  const rules = of === 0 ? chart.rules.map(rule => ({ yAxis: rule[0], name: rule[1] })) : [];
  const changes = (chart.marks ?? []).filter(mark => mark[2] === of).map(mark => ({ xAxis: mark[0],
    name: mark[1], lineStyle: { color: paint, type: "solid", width: 1.5, opacity: 0.6 },
    label: { show: named.has(mark), position: "end", color: theme.ink, fontSize: 10 } }));
  if (!rules.length && !changes.length) return {};
  return { markLine: { silent: true, symbol: "none", animation: false,
    lineStyle: { color: theme.ink, type: "dashed" },
    label: { formatter: item => item.name, color: theme.quiet, position: "insideEndTop" },
    data: [...rules, ...changes] } };
}

function lineOption(chart, width, theme) {
  const slots = 1 + Math.max(...chart.series.map(series => series.s));
  const legend = legendOf(chart, width - 16, theme, slots);
  const place = value => chart.x.s === "tail" ? tail(value) : value;
  const most = Math.max(...chart.series.flatMap(one => one.y).filter(Number.isFinite), 0);
  const wide = Math.max(textWidth(text(most * 1.2, 3), 11), textWidth("0.0001", 11)) + 34;
  const told = labelled(chart, width - wide - 24);
  const series = [];
  chart.series.forEach((one, of) => {
    const paint = colour(one.s, slots, theme);
    const named = { name: one.n };
    const marks = chart.form === "points" || one.x.length <= 40;
    if (one.lo) {
      series.push(pieces(one.x.map((x, i) => one.lo[i] == null ? [[null, null]]
        : [[place(x), one.lo[i]], [place(x), one.hi[i]]]), { width: 1, color: paint, opacity: 0.45 },
      named));
    }
    const spans = chart.spans.filter(span => span[2] === of || (span[2] == null && of === 0));
    series.push({ type: one.l === "none" ? "scatter" : "line", ...named, color: paint,
      animation: false, symbol: "circle", cursor: "pointer",
      showSymbol: marks && !(chart.form === "points" && one.l === "steps"),
      symbolSize: chart.form === "points" ? (one.x.length > 60 ? 5 : 8) : 4, step: one.l === "steps" ? "end" : false,
      lineStyle: { width: 1.5, color: paint }, itemStyle: { color: paint }, z: 5,
      data: one.x.map((x, at) => ({ value: [place(x), one.y[at]], of, at })),
      ...(spans.length ? { markArea: { silent: true, label: { show: false }, data: spans.map(span =>
        [{ xAxis: span[0], itemStyle: spanStyle(span, paint) }, { xAxis: span[1] }]) } } : {}),
      ...marksOf(chart, of, paint, theme, told) });
  });
  const top = legend.height + 14, plot = width < 620 ? 220 : 260;
  const zoom = timeRange(chart);
  const named = chart.x.c.length ? namedAxis(chart.x, width - wide - 24, theme) : null;
  const unit = named ? value => chart.x.c[Math.round(value)] ?? "" : value => `${text(value, 5)} s`;
  return { height: top + plot + (zoom ? 72 : 46) + (named ? named.foot - 18 : 0), option: { ...common(chart, theme), legend: legend.option,
    ...(zoom ? { dataZoom: [{ type: "slider", bottom: 4, height: 16, filterMode: "none", ...zoom,
      brushSelect: true, showDataShadow: false, labelFormatter: unit,
      borderColor: theme.line, fillerColor: "rgba(128,128,128,.2)", textStyle: { color: theme.quiet } }] } : {}),
    grid: { left: Math.ceil(wide), right: 24, top, height: plot, outerBoundsMode: "none" },
    xAxis: named ?? { ...numberAxis(chart.x, theme), nameGap: 26 },
    yAxis: { ...numberAxis(chart.y, theme), ...(named ? { axisLine: { show: false } } : {}), nameGap: Math.ceil(wide) - 16 }, series } };
}

const isForest = chart => chart.form === "forest" && chart.series.length <= ROWS_MAX;
const optionOf = (chart, width, theme) => chart.form !== "forest" ? lineOption(chart, width, theme)
  : isForest(chart) ? forestOption(chart, width, theme) : panelOption(chart, width, theme);

// ---- Drawing, saving, redrawing ----

function unpack(chart) {
  let before = {};
  for (const series of chart.series) {
    for (const key of ["n", "s", "l"]) series[key] ??= before[key];
    before = series;
    if (series.k) { // So many units of k, the interval from there.
      series.lo &&= series.lo.map((away, place) => away == null ? away : (series.y[place] - away) * series.k);
      series.hi &&= series.hi.map((away, place) => away == null ? away : (series.y[place] + away) * series.k);
      series.y = series.y.map(units => units == null ? units : units * series.k);
    }
    if (series.xs) series.x = series.y.map((_, place) => series.xs[0] + place * series.xs[1]);
    if (!series.x) series.x = series.y.map((_, place) => place);
    for (const key of ["y", "lo", "hi"]) {
      if (series[key]) series[key] = series[key].map(value => value === "inf" ? Infinity : value);
    }
    series.y = series.y.map(value => value ?? NaN);
  }
  return chart;
}

function draw(plot, printing = false) {
  const state = CHARTS.get(plot);
  const width = plot.clientWidth;
  if (!width) return;
  state.chart ??= unpack(data(state.id));
  const theme = isDark() && !printing ? DARK : LIGHT;
  const { height, option } = optionOf(state.chart, width, theme);
  const kept = state.view && state.view.getOption().legend?.[0]?.selected;
  if (kept && option.legend && Object.keys(kept).length) option.legend.selected = kept;
  plot.style.height = `${height}px`;
  state.view ??= library().init(plot, null, { renderer: "svg", width, height });
  state.view.resize({ width, height });
  state.view.setOption(option, { notMerge: true });
  state.width = width;
  if (!state.listens) {
    state.listens = true;
    state.view.on("datazoom", () => keepTimeRange(state.chart, state.view));
    state.view.on("legendselectchanged", event => keepShown(event.selected));
    state.view.on("click", item => {
      if (item.data?.of === undefined) return;
      const series = state.chart.series[item.data.of];
      const runs = series.R || (series.r && series.r[item.data.at]) || [];
      if (runs.length) showRuns(`${series.n}: ${state.chart.title}`, runs);
    });
  }
  if (Object.values(option.legend?.selected ?? {}).some(shown => !shown) && !state.hint) {
    state.hint = make("p", { class: "notes noprint" }, "Select a name to show or hide its lines.");
    plot.after(state.hint);
  }
}

function redrawCharts(printing = false) {
  for (const [plot, state] of CHARTS) if (state.view) draw(plot, printing);
}

function download(blob, name) {
  const link = make("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

// The chart as an SVG of its own: with its title, on white, wide enough to be read in a post.
function svgOf(state) {
  const chart = state.chart ?? unpack(data(state.id));
  const width = 1100, head = 34;
  const { height, option } = optionOf(chart, width, LIGHT);
  const view = library().init(null, null, { renderer: "svg", ssr: true, width, height });
  option.backgroundColor = "#ffffff";
  if (option.legend && state.view) {
    const selected = state.view.getOption().legend?.[0]?.selected;
    if (selected && Object.keys(selected).length) option.legend.selected = selected;
  }
  view.setOption(option);
  const inner = view.renderToSVGString();
  view.dispose();
  return { width, height: height + head, svg: `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" ` +
    `height="${height + head}"><rect width="100%" height="100%" fill="#ffffff"/><text x="10" y="22" ` +
    `font-family="Liberation Sans, Arial, sans-serif" font-size="15" font-weight="600" ` +
    `fill="#1a1d21">${escaped(chart.title)}</text><g transform="translate(0 ${head})">${inner}</g></svg>` };
}

function saveSvg(state) {
  download(new Blob([svgOf(state).svg], { type: "image/svg+xml" }), `${state.id}.svg`);
}

function savePng(state) {
  const { width, height, svg } = svgOf(state);
  const image = new Image();
  image.onload = () => {
    const canvas = make("canvas", { width: 2 * width, height: 2 * height });
    const pen = canvas.getContext("2d");
    pen.scale(2, 2);
    pen.drawImage(image, 0, 0);
    canvas.toBlob(blob => download(blob, `${state.id}.png`), "image/png");
  };
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`;
}

const SEEN = new IntersectionObserver(entries => {
  for (const entry of entries) {
    if (entry.isIntersecting && !CHARTS.get(entry.target).view) draw(entry.target);
  }
}, { rootMargin: "400px" });

function watchCharts(root) {
  for (const figure of $$("figure.chart", root)) {
    const plot = $(".plot", figure);
    const state = { id: figure.dataset.json };
    CHARTS.set(plot, state);
    // Charts in folds are read when they are drawn: only forests have choices.
    const words = document.getElementById(`data-${state.id}`).textContent;
    if (words.includes('"form":"forest"')) state.chart = unpack(JSON.parse(words));
    const choices = state.chart && isForest(state.chart)
      ? [forestChoice("range", "Range of the axis", RANGES), forestChoice("sort", "Order of the rows", ORDERS)] : [];
    figure.append(make("div", { class: "tools" }, ...choices,
      make("button", { type: "button", onclick: () => saveSvg(state) }, "Save SVG"),
      make("button", { type: "button", onclick: () => savePng(state) }, "Save PNG")));
    SEEN.observe(plot);
  }
}

function initCharts() {
  watchCharts(document);
  watchFlames(document);
  showForestChoices();
  let waiting = 0;
  addEventListener("resize", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => {
      for (const [plot, state] of CHARTS) {
        if (state.view && plot.clientWidth && plot.clientWidth !== state.width) draw(plot);
      }
    }, 120);
  });
  addEventListener("beforeprint", () => {
    unfoldAll("details[open]");
    for (const plot of CHARTS.keys()) draw(plot, true);
    // Paper does not scroll.
    for (const table of $$(".scroll > table")) {
      if (table.scrollWidth > PAPER) table.style.zoom = PAPER / table.scrollWidth;
    }
  });
  addEventListener("afterprint", () => {
    redrawCharts();
    for (const table of $$(".scroll > table")) table.style.zoom = "";
  });
}

initPage();
$$(".heat").forEach(initHeat);
initCharts();
openFor(location.hash);
