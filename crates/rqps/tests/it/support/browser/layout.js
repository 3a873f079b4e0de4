// What is cut, what overlaps, what runs over. The body of a function in the page.
const faults = [];
const room = document.documentElement.clientWidth;
if (document.documentElement.scrollWidth > room) {
  const wide = [...document.querySelectorAll("main *, header *")].filter(element =>
    element.getBoundingClientRect().right > room + 1 && !element.closest(".scroll, pre, svg"));
  faults.push(`the page is ${document.documentElement.scrollWidth} wide in ${room}: ` +
    wide.slice(0, 3).map(element => element.outerHTML.slice(0, 80)).join(" "));
}
const drawn = new Set();
let texts = 0;
for (const svg of document.querySelectorAll(".plot svg")) {
  const frame = svg.getBoundingClientRect();
  const where = svg.closest("figure").id;
  const boxes = [];
  for (const element of svg.querySelectorAll("text")) {
    const words = element.textContent;
    const box = element.getBoundingClientRect();
    if (!words || !box.width) continue;
    texts++;
    drawn.add(words);
    if (words.includes("…")) faults.push(`${where}: "${words}" is cut`);
    if (box.left < frame.left - 1 || box.right > frame.right + 1 ||
        box.top < frame.top - 1 || box.bottom > frame.bottom + 1) {
      faults.push(`${where}: "${words}" leaves the chart`);
    }
    boxes.push([words, box]);
  }
  for (let i = 0; i < boxes.length; i++) {
    for (let j = i + 1; j < boxes.length; j++) {
      const [a, b] = [boxes[i][1], boxes[j][1]];
      const across = Math.min(a.right, b.right) - Math.max(a.left, b.left);
      const down = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
      // Boxes of text are a little taller than the letters.
      if (across > 2 && down > 4) {
        faults.push(`${where}: "${boxes[i][0]}" and "${boxes[j][0]}" overlap`);
      }
    }
  }
}
const holders = "td, th, td button, th button, figcaption, h1, h2, summary, main p, dd, dt, li, label";
for (const element of document.querySelectorAll(holders)) {
  if (element.clientWidth && element.scrollWidth > element.clientWidth + 1) {
    faults.push(`cut: ${element.outerHTML.slice(0, 120)}`);
  }
}
const steps = [...CHARTS.values()].filter(state => state.chart.form === "forest")
  .flatMap(state => state.chart.x.c);
return { width: innerWidth, faults: faults.slice(0, 12), texts, drawn: [...drawn], steps };
