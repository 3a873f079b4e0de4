// What a flame graph shows and how it answers. The body of a function in the page.
const boxes = [...document.querySelectorAll("figure[data-flame]")];
boxes.forEach(drawFlame);
// In some steps the whole operation is cheaper.
const box = boxes.find(it => it.querySelector(".worse"));
const svg = box.querySelector(".flame svg");
const name = group => box.graph.frames[group.dataset.place].name;
const groups = () => [...svg.querySelectorAll("g.frame")];
const frames = [...new Set(groups().map(name))].sort();
const worse = groups().filter(group => group.classList.contains("worse")).map(name);
const press = key => {
  svg.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
  return name(svg.querySelector('g[tabindex="0"]'));
};
const keys = ["ArrowDown", "ArrowDown", "ArrowLeft", "ArrowRight", "ArrowDown", "ArrowUp"].map(press);
press("Enter");
const zoomed = box.graph.zoom?.name === "slow_path" && svg.querySelectorAll(".above").length === 2;
press("Escape");
box.graph.search.value = "SLOW";
box.graph.search.dispatchEvent(new Event("input"));
const found = svg.querySelectorAll(".found").length;
// Letters stand out from what is behind them, in both themes.
const light = colour => {
  const canvas = document.createElement("canvas").getContext("2d");
  canvas.fillStyle = colour;
  canvas.fillRect(0, 0, 1, 1);
  const [r, g, b] = [...canvas.getImageData(0, 0, 1, 1).data].map(value => (value / 255) ** 2.2);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const contrasts = ["light", "dark"].flatMap(theme => {
  document.documentElement.dataset.theme = theme;
  return groups().filter(group => group.querySelector("text")).map(group => {
    const [ink, ground] = ["text", "rect"].map(part =>
      light(getComputedStyle(group.querySelector(part)).fill));
    return (Math.max(ink, ground) + 0.05) / (Math.min(ink, ground) + 0.05);
  });
});
return { graphs: boxes.length, frames, worse: [...new Set(worse)].sort(), keys, zoomed, found,
  says: box.graph.says.textContent, contrast: contrasts.every(ratio => ratio >= 4.5), contrasts };
