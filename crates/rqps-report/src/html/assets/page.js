"use strict";
// The page: theme, tables that sort, where numbers come from, details that open for a link.
const $ = (selector, root = document) => root.querySelector(selector);
const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];
const data = id => JSON.parse(document.getElementById(`data-${id}`).textContent);
const RUNS = data("runs"); // [href, name] of each run folder

function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value != null) element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

// A number in at most `digits` significant digits, never with an exponent.
function text(number, digits = 4) {
  if (number == null || Number.isNaN(number)) return "–";
  if (!Number.isFinite(number)) return "inf";
  const size = number === 0 ? 0 : Math.floor(Math.log10(Math.abs(number)));
  const after = Math.min(Math.max(digits - 1 - size, 0), 12);
  const fixed = number.toFixed(after);
  return fixed.includes(".") ? fixed.replace(/\.?0+$/, "") : fixed;
}

const isDark = () => document.documentElement.dataset.theme
  ? document.documentElement.dataset.theme === "dark"
  : matchMedia("(prefers-color-scheme: dark)").matches;

function initTheme() {
  const button = $("#theme");
  const show = () => {
    button.textContent = isDark() ? "Light" : "Dark";
    button.setAttribute("aria-label", `Switch to ${isDark() ? "light" : "dark"} colours`);
  };
  try {
    const kept = localStorage.getItem("rqps-theme");
    if (kept) document.documentElement.dataset.theme = kept;
  } catch { /* Storage may be forbidden for files: the choice then lasts as long as the page. */ }
  button.addEventListener("click", () => {
    const theme = isDark() ? "light" : "dark";
    document.documentElement.dataset.theme = theme;
    try { localStorage.setItem("rqps-theme", theme); } catch { /* As above. */ }
    show();
    redrawCharts();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    show();
    redrawCharts();
  });
  button.hidden = false;
  show();
}

// ---- Tables that sort ----

const isNumber = value => value !== "" && !Number.isNaN(Number(value));

function sortKey(row, column) {
  const cell = row.cells[column];
  if (!cell) return "";
  if (cell.dataset.v !== undefined) return cell.dataset.v;
  const words = cell.textContent.trim();
  const first = words.split(/[\s[(]/)[0];
  return cell.classList.contains("n") && isNumber(first) ? first : words;
}

function sortBy(table, column, direction) {
  const rows = [...table.tBodies[0].rows];
  const keys = new Map(rows.map((row, place) => [row, [sortKey(row, column), place]]));
  const sign = direction === "descending" ? -1 : 1;
  rows.sort((a, b) => {
    const [x, xPlace] = keys.get(a);
    const [y, yPlace] = keys.get(b);
    const xNumber = isNumber(x), yNumber = isNumber(y);
    if (xNumber !== yNumber) return xNumber ? -1 : 1; // What has no number comes last.
    const order = xNumber ? Number(x) - Number(y)
      : x.localeCompare(y, "en", { numeric: true });
    return sign * order || xPlace - yPlace;
  });
  table.tBodies[0].append(...rows);
  for (const [place, head] of [...table.tHead.rows[0].cells].entries()) {
    head.setAttribute("aria-sort", place === column ? direction : "none");
  }
}

function sortable(table) {
  if (!table.tHead || table.dataset.sortable) return;
  table.dataset.sortable = "yes";
  for (const head of table.tHead.rows[0].cells) {
    const button = make("button", { type: "button", class: "sort" }, ...head.childNodes);
    button.addEventListener("click", () => {
      const falling = head.getAttribute("aria-sort") === "ascending";
      sortBy(table, head.cellIndex, falling ? "descending" : "ascending");
    });
    head.setAttribute("aria-sort", "none");
    head.append(button);
  }
}

// ---- Where numbers come from ----

// A run is a folder; on a site, a point comes from a result set, which has a page.
const isPage = run => RUNS[run][0].endsWith(".html");
const runLink = (run, path = "", words) =>
  make("a", { href: RUNS[run][0] + (isPage(run) ? "" : path) }, words ?? RUNS[run][1]);

function show(title, ...content) {
  const dialog = $("#sources");
  const close = make("button", { type: "button", class: "close", onclick: () => dialog.close() },
    "Close");
  dialog.replaceChildren(make("h2", { id: "sources-title" }, title), ...content, close);
  dialog.setAttribute("aria-labelledby", "sources-title");
  if (!dialog.open) dialog.showModal();
  dialog.scrollTop = 0;
}

function showRuns(title, runs) {
  const items = runs.map(run => make("li", {}, runLink(run, "/")));
  const what = isPage(runs[0]) ? "result set" : "run";
  show(title, make("p", {}, items.length === 1 ? `From this ${what}:` : `From ${items.length} ${what}s:`),
    make("ul", {}, ...items));
}

function initSources() {
  $("#sources").addEventListener("click", event => {
    if (event.target === event.currentTarget) event.currentTarget.close();
  });
  $("main").addEventListener("click", event => {
    if (event.target.closest("a") || getSelection().type === "Range") return;
    const from = event.target.closest("[data-r]");
    if (!from) return;
    const cell = event.target.closest("td");
    const title = cell && !event.target.closest(".from") ? cell.textContent.trim() : "Runs";
    showRuns(title, from.dataset.r.split(" ").map(Number));
  });
}

// ---- Details ----

// For those who have no pointer: a button at the end of each row that leads to runs.
function addSources(root) {
  for (const row of $$("tr[data-r]", root)) {
    row.cells[row.cells.length - 1].append(make("button", { type: "button", class: "from",
      "aria-label": "Runs behind this row" }, "↗"));
  }
}

function initDetails(root) {
  for (const table of $$("table", root)) {
    if (!table.closest("details:not([open])")) sortable(table);
  }
}

// What is folded is the text of a <noscript> until somebody wants it.
function unfold(fold) {
  const box = $(":scope > .in", fold);
  const kept = $(":scope > noscript", box);
  if (!kept) return;
  box.innerHTML = kept.textContent;
  addSources(box);
  initDetails(box);
  watchCharts(box);
  watchFlames(box);
}

const unfoldAll = which => $$(which).forEach(unfold);

// Whoever searches the page for a word must find it in what is closed, too: once nothing else is
// to be done, one after the other.
function unfoldIdly() {
  const idle = window.requestIdleCallback ?? (work => setTimeout(work, 50));
  const folds = $$("details");
  const next = () => {
    const fold = folds.shift();
    if (!fold) return;
    unfold(fold);
    idle(next);
  };
  idle(next);
}

// How charts are looked at. It follows the name of a section in the link: #overview&range=20.
const VIEW = new URLSearchParams(location.hash.split("&").slice(1).join("&"));

// Changes a part of the view and of the link; null takes it away.
function keepView(key, value) {
  if (value == null) VIEW.delete(key);
  else VIEW.set(key, value);
  const rest = VIEW.toString();
  history.replaceState(null, "", `#${location.hash.slice(1).split("&")[0]}${rest && `&${rest}`}`);
}

function openFor(hash) {
  const id = hash && decodeURIComponent(hash.slice(1).split("&")[0]);
  if (!id) return;
  if (!document.getElementById(id)) unfoldAll("details");
  const target = document.getElementById(id);
  if (!target) return;
  for (let at = target; at; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true;
  const whole = document.getElementById(`${id}-all`);
  if (whole) whole.open = true;
  target.scrollIntoView();
}

function initSteps() {
  const section = $("#steps");
  if (!section) return;
  const folds = $$(":scope > details", section);
  const filter = make("input", { type: "search", "aria-label": "Filter steps by name" });
  const count = make("span", { role: "status" });
  filter.addEventListener("input", () => {
    const wanted = filter.value.toLowerCase();
    for (const fold of folds) {
      fold.hidden = !$("summary", fold).textContent.toLowerCase().includes(wanted);
    }
    count.textContent = `${folds.filter(fold => !fold.hidden).length} of ${folds.length} steps`;
  });
  const all = open => () => folds.forEach(fold => { if (!fold.hidden) fold.open = open; });
  const tools = make("div", { class: "tools" },
    make("label", {}, "Filter ", filter),
    make("button", { type: "button", onclick: all(true) }, "Open all"),
    make("button", { type: "button", onclick: all(false) }, "Close all"), count);
  $("h2", section).after(tools);
}

// The overview of a site: one field filters the rows of all tables; the link keeps it.
function initSite() {
  if (!$("#sets")) return;
  const rows = $$("main tbody tr").map(row => [row, row.textContent.toLowerCase()]);
  const field = make("input", { type: "search", "aria-label": "Filter all tables", id: "filter" });
  const count = make("span", { role: "status" });
  const apply = () => {
    const words = field.value.toLowerCase().split(/\s+/);
    let shown = 0;
    for (const [row, said] of rows) {
      row.hidden = !words.every(word => said.includes(word));
      if (!row.hidden) shown++;
    }
    count.textContent = field.value ? `${shown} of ${rows.length} rows` : "";
  };
  field.value = VIEW.get("filter") ?? "";
  field.addEventListener("input", () => { apply(); keepView("filter", field.value || null); });
  $("main").prepend(make("div", { class: "tools" }, make("label", {}, "Filter ", field), count));
  apply();
}

function initPage() {
  initTheme();
  initSources();
  addSources(document);
  initDetails(document);
  initSteps();
  initSite();
  // This event does not rise: it is met on its way down.
  document.addEventListener("toggle", event => {
    if (!event.target.open || event.target.tagName !== "DETAILS") return;
    unfold(event.target);
    initDetails(event.target);
  }, true);
  addEventListener("load", unfoldIdly);
  addEventListener("hashchange", () => openFor(location.hash));
  document.addEventListener("click", event => {
    const link = event.target.closest('a[href^="#"]');
    if (link) openFor(link.getAttribute("href"));
  });
}
