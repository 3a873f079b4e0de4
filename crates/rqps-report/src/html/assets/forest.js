// Forest plots: a row for each step and target, ratio and interval on a logarithmic axis around 1.
const RANGES = [["all", "All"], ["20", "± 20 %"], ["5", "± 5 %"]];
const ORDERS = [["name", "By name"], ["size", "By size"]];

// Round ratios from `low` to `high` that stand at least `gap` pixels apart.
function ratioTicks(low, high, width, gap = 50) {
  const place = ratio => Math.log(ratio / low) / Math.log(high / low) * width;
  const apart = ticks => ticks.every((tick, at) => at === 0 || place(tick) - place(ticks[at - 1]) >= gap);
  const multiples = step => {
    const ticks = [];
    for (let nth = Math.ceil(low / step - 1e-9); nth * step <= high * 1.000001; nth++) {
      if (nth > 0) ticks.push(nth * step);
      if (ticks.length > 40) return null;
    }
    return ticks;
  };
  const decades = parts => {
    const ticks = [];
    for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power++) {
      ticks.push(...parts.map(part => part * 10 ** power).filter(tick => tick >= low && tick <= high));
    }
    return ticks;
  };
  const even = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.25, 0.5].map(multiples)
    .find(ticks => ticks && ticks.length > 2 && apart(ticks));
  if (even && high / low < 4) return even;
  return [[1, 1.5, 2, 3, 5, 7], [1, 2, 5], [1, 3], [1]].map(decades).find(apart) ?? [1];
}

// The ends of the axis: symmetric around 1 by choice, else all that is drawn and the margin.
function forestReach(chart, range) {
  if (range !== "all") return [1 - range / 100, 1 / (1 - range / 100)];
  const drawn = chart.series.flatMap(one => [...one.y, ...(one.lo ?? []), ...(one.hi ?? [])])
    .filter(value => Number.isFinite(value) && value > 0);
  const [low, high] = chart.margin ?? [1, 1];
  const ends = [Math.min(low ** 2, ...drawn), Math.max(high ** 2, ...drawn)].map(Math.log);
  const pad = 0.03 * (ends[1] - ends[0]);
  return [Math.exp(ends[0] - pad), Math.exp(ends[1] + pad)];
}

// Places of the categories from top to bottom; by size: the smallest ratio of any series first.
function forestOrder(chart, order) {
  const places = chart.x.c.map((_, place) => place);
  if (order !== "size") return places;
  const least = place => Math.min(...chart.series.map(one => {
    const at = one.x.indexOf(place);
    return at < 0 || Number.isNaN(one.y[at]) ? Infinity : one.y[at];
  }));
  return places.sort((a, b) => least(a) - least(b) || a - b);
}

function forestOption(chart, width, theme) {
  const order = forestOrder(chart, VIEW.get("sort") ?? "name");
  const names = order.map(place => chart.x.c[place]);
  const row = order.reduce((rows, place, at) => rows.set(place, at), new Map());
  const many = chart.series.length;
  const slots = 1 + Math.max(...chart.series.map(series => series.s));
  const above = width < 620; // Names go above their rows where there is no room beside them.
  const line = 16;
  const rowHeight = many * line + (above ? 24 : 8);
  const left = above ? 12 : Math.ceil(Math.max(...names.map(name => textWidth(name)))) + 14;
  const right = Math.ceil(Math.max(...chart.series.flatMap(one => one.y)
    .map(value => textWidth(`◂ ${ratioText(value)}`, 11)))) + 18;
  const legend = many > 1 ? legendOf(chart, width - 16, theme, slots) : null;
  const top = (legend ? legend.height : 0) + 6;
  const height = top + names.length * rowHeight + 42;
  const [low, high] = forestReach(chart, VIEW.get("range") ?? "all");
  const [from, to] = [Math.log(low), Math.log(high)];
  const on = ratio => Math.min(Math.max(Math.log(ratio), from), to);
  const at = (place, nth) => row.get(place) * rowHeight + (above ? 20 : 4) + (nth + 0.5) * line;
  const series = [];
  chart.series.forEach((one, nth) => {
    const points = one.y.map((value, place) => ({ value, place, y: at(one.x[place], nth),
      low: one.lo && one.lo[place], high: one.hi && one.hi[place],
      paint: many === 1 ? direction(one, place, theme) : colour(one.s, slots, theme) }))
      .filter(point => Number.isFinite(point.value));
    const named = { name: one.n };
    for (const paint of new Set(points.map(point => point.paint))) {
      const ranges = points.filter(p => p.paint === paint && p.low != null
        && p.low < high && p.high > low);
      series.push(pieces(ranges.map(p => [[on(p.low), p.y], [on(p.high), p.y]]),
        { width: 2.5, color: paint, opacity: 0.6 }, { ...named, color: paint }));
      series.push(caps(ranges.flatMap(p => [[p.low, p.y], [p.high, p.y]])
        .filter(([x]) => x >= low && x <= high).map(([x, y]) => [Math.log(x), y]), [1.5, 8], paint, named));
    }
    series.push({ type: "scatter", ...named, z: 6, animation: false, cursor: "pointer", clip: false,
      data: points.map(p => ({ value: [on(p.value), p.y], of: nth, at: p.place,
        symbol: p.value < low ? "path://M10 0L0 5L10 10z" : p.value > high ? "path://M0 0L10 5L0 10z" : "circle",
        symbolSize: 8, itemStyle: { color: p.paint } })) });
    series.push({ type: "scatter", ...named, silent: true, symbolSize: 0, animation: false, clip: false,
      tooltip: { show: false }, data: points.map(p => ({ value: [to, p.y], label: { show: true,
        position: "right", distance: 6, fontSize: 11, color: theme.ink,
        formatter: (p.value < low ? "◂ " : p.value > high ? "▸ " : "") + ratioText(p.value) } })) });
  });
  series.push({ type: "line", silent: true, data: [], tooltip: { show: false },
    markArea: chart.margin && { silent: true, label: { show: false },
      itemStyle: { color: theme.base, opacity: 0.18 },
      data: [[{ xAxis: on(chart.margin[0]) }, { xAxis: on(chart.margin[1]) }]] },
    markLine: { silent: true, symbol: "none", animation: false, label: { show: false },
      lineStyle: { color: theme.ink, type: "solid", width: 1 }, data: [{ xAxis: 0 }] } });
  if (above) series.push(caps(names.map((name, place) => ({ value: [from, place * rowHeight + 11],
    label: { show: true, position: "right", distance: 0, fontSize: 12, color: theme.ink,
      formatter: () => name } })), 0, "transparent"));
  const ticks = ratioTicks(low, high, width - left - right).map(Math.log);
  return { height, option: { ...common(chart, theme),
    legend: legend ? legend.option : { show: false },
    grid: { left, right, top, bottom: 42, containLabel: false, outerBoundsMode: "none" },
    xAxis: { type: "value", min: from, max: to, position: "bottom", ...lineAxis(theme),
      splitLine: { show: false }, axisTick: { show: true, customValues: ticks },
      axisLine: { show: true, onZero: false, lineStyle: { color: theme.quiet } },
      axisLabel: { color: theme.quiet, fontSize: 11, customValues: ticks, hideOverlap: false,
        formatter: value => text(Math.exp(value), 4) },
      name: `${axisName(chart.y)}, logarithmic`, nameLocation: "middle", nameGap: 24,
      nameTextStyle: { color: theme.quiet, fontSize: 11 } },
    yAxis: { type: "value", min: 0, max: names.length * rowHeight, inverse: true,
      axisLine: { show: true, lineStyle: { color: theme.quiet } }, axisTick: { show: false },
      splitLine: { show: false },
      axisLabel: { show: !above, color: theme.ink, fontSize: 12, hideOverlap: false, margin: 8,
        customValues: names.map((_, place) => place * rowHeight + rowHeight / 2),
        formatter: value => names[Math.round((value - rowHeight / 2) / rowHeight)] ?? "" } },
    series } };
}

// A choice for all forest plots of the page, kept in its link.
function forestChoice(key, words, choices) {
  const buttons = choices.map(([value, label]) => make("button", { type: "button",
    "data-key": key, "data-value": value, onclick: () => {
      keepView(key, value === choices[0][0] ? null : value);
      showForestChoices();
      redrawCharts();
    } }, label));
  return make("span", { class: "set", role: "group", "aria-label": words }, ...buttons);
}

function showForestChoices() {
  for (const button of $$("button[data-key]")) {
    const first = button.parentElement.firstElementChild.dataset.value;
    const chosen = (VIEW.get(button.dataset.key) ?? first) === button.dataset.value;
    button.setAttribute("aria-pressed", chosen);
  }
}
