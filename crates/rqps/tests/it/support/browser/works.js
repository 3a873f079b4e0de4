// Uses the page as a reader would, and tells what happened. The body of a function in the page.
const answer = {};
const table = document.querySelector(".heat table");
const names = () => [...table.tBodies[0].rows].filter(row => !row.hidden)
  .map(row => row.cells[0].textContent);
const heads = [...table.tHead.rows[0].cells];
answer.headsAreButtons = heads.every(head => head.firstElementChild.tagName === "BUTTON");
heads[4].firstElementChild.click();
answer.rising = names();
heads[4].firstElementChild.click();
answer.falling = names();
const tools = document.querySelector(".heat .tools");
const group = name => [...tools.querySelectorAll("button")]
  .find(button => button.textContent === name).click();
group("write");
answer.onlyWrites = names().sort();
group("all");
const filter = tools.querySelector("input");
filter.value = "SCAN";
filter.dispatchEvent(new Event("input"));
answer.filtered = names();
answer.status = tools.querySelector("[role=status]").textContent;
filter.value = "";
filter.dispatchEvent(new Event("input"));
const shown = () => [...table.querySelectorAll("button.cell")].map(cell => cell.textContent).join();
answer.byRate = shown();
const metric = tools.querySelector("select");
metric.value = 1;
metric.dispatchEvent(new Event("change"));
answer.byCpu = shown();
metric.value = 0;
metric.dispatchEvent(new Event("change"));

const first = table.querySelector("button.cell");
first.focus();
const press = key => document.activeElement.dispatchEvent(
  new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
press("ArrowDown");
const below = document.activeElement.closest("tr") ===
  first.closest("tr").nextElementSibling;
press("ArrowRight");
const beside = document.activeElement.closest("td").cellIndex ===
  first.closest("td").cellIndex + 1;
answer.movedBy = below && beside ? "ArrowDown and ArrowRight" : "something else";

const dialog = document.querySelector("#sources");
const links = () => [...dialog.querySelectorAll("a:not([href^='#'])")]
  .map(link => link.getAttribute("href"));
document.activeElement.click();
answer.links = dialog.open ? links() : [];
dialog.close();
document.querySelector("#steps button.from").click();
answer.links.push(...(dialog.open ? links() : []));
dialog.close();

document.querySelector("#theme").click();
answer.theme = document.documentElement.dataset.theme;
answer.saved = "ok";
for (const state of CHARTS.values()) {
  const read = new DOMParser().parseFromString(svgOf(state).svg, "image/svg+xml");
  if (read.querySelector("parsererror")) answer.saved = `${state.id}: ${read.documentElement.textContent}`;
}
answer.stalls = [...CHARTS.values()].flatMap(state => state.chart.spans).length;
answer.resources = performance.getEntriesByType("resource").length;
answer.violations = 0;
document.addEventListener("securitypolicyviolation", () => answer.violations++);
await new Promise(done => setTimeout(done, 100));
return answer;
