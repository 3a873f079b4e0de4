// Flame graphs: stacks from callers down to those they call, as wide as their time.
const FLAME_ROW = 18;
const FLAME_LETTER = 6.4; // A letter is about so wide.
const SVG = "http://www.w3.org/2000/svg";

function drawing(tag, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

const microseconds = time => `${text(time, 4)} µs`;

// Frames are five numbers each: caller + 1, name, baseline, target, and how the function differs
// wherever it is called: from -1 to 1, 0 if it was not shown to.
function flameFrames(flame) {
  const frames = [];
  for (let at = 0; at < flame.frames.length; at += 5) {
    const [caller, name, baseline, target, change] = flame.frames.slice(at, at + 5);
    const frame = { place: frames.length, up: caller ? frames[caller - 1] : null, down: [],
      name: flame.names[name], times: [baseline, target], change };
    frame.depth = frame.up ? frame.up.depth + 1 : 0;
    if (frame.up) frame.up.down.push(frame);
    frames.push(frame);
  }
  return frames;
}

function flameWords(flame, frame) {
  const [baseline, target] = frame.times;
  const more = target - baseline;
  const sign = more < 0 ? "−" : "+";
  return `${frame.name}: ${flame.target} ${microseconds(target)}, ${flame.baseline} ` +
    `${microseconds(baseline)}, ${sign}${microseconds(Math.abs(more))}` +
    (frame.change ? `; shown to take ${frame.change > 0 ? "more" : "less"}` : "");
}

class FlameGraph {
  constructor(box) {
    this.box = box;
    this.flame = data(box.dataset.flame);
    this.frames = flameFrames(this.flame);
    this.side = 1; // Width by the target.
    this.zoom = null;
    this.found = null;
    this.focus = this.frames[0];
    this.says = make("p", { class: "notes", role: "status" });
    this.search = make("input", { type: "search", placeholder: "Find a function",
      "aria-label": "Find a function", oninput: () => this.seek() });
    this.sides = [1, 0].map(side => make("button", { type: "button",
      onclick: () => { this.side = side; this.draw(); } },
      `Width by ${side ? this.flame.target : this.flame.baseline}`));
    this.whole = make("button", { type: "button", onclick: () => this.zoomTo(null) }, "Whole graph");
    this.svg = drawing("svg", { role: "tree", "aria-label": this.flame.title });
    this.svg.addEventListener("click", event => {
      const frame = this.at(event);
      if (frame) { this.focus = frame; this.zoomTo(frame); }
    });
    this.svg.addEventListener("mouseover", event => this.say(this.at(event) ?? this.focus));
    this.svg.addEventListener("keydown", event => this.key(event));
    $(".flame", box).replaceChildren(
      make("div", { class: "tools" }, ...this.sides, this.whole, this.search), this.svg, this.says);
    this.draw();
  }

  at(event) {
    const group = event.target.closest("g[data-place]");
    return group ? this.frames[group.dataset.place] : null;
  }

  say(frame) { this.says.textContent = frame ? flameWords(this.flame, frame) : ""; }

  seek() {
    const words = this.search.value.trim().toLowerCase();
    this.found = words ? frame => frame.name.toLowerCase().includes(words) : null;
    this.draw();
    if (!this.found) return this.say(this.focus);
    // What is called by what was found is in its time.
    const outer = frame => frame && (this.found(frame) || outer(frame.up));
    const hits = this.frames.filter(frame => this.found(frame) && !outer(frame.up));
    const sum = side => hits.reduce((sum, frame) => sum + frame.times[side], 0);
    const all = this.frames.filter(frame => !frame.up).reduce((sum, it) => sum + it.times[1], 0);
    this.says.textContent = hits.length === 0 ? "No function has this in its name."
      : `${text(100 * sum(1) / all, 3)} % of ${this.flame.target}: ${microseconds(sum(1))}, ` +
        `${this.flame.baseline} ${microseconds(sum(0))}`;
  }

  zoomTo(frame) {
    this.zoom = frame;
    if (frame) this.focus = frame;
    this.draw();
    $(`g[data-place="${this.focus.place}"]`, this.svg)?.focus();
    this.say(this.focus);
  }

  // Places of what is shown: a row for each depth, from the roots or what was zoomed to.
  layout(width) {
    const side = this.side;
    const roots = this.zoom ? [this.zoom] : this.frames.filter(frame => !frame.up);
    const all = roots.reduce((sum, frame) => sum + frame.times[side], 0) || 1;
    const shown = [];
    const lay = (frames, left, row) => {
      for (const frame of [...frames].sort((a, b) => a.name < b.name ? -1 : 1)) {
        const wide = frame.times[side] / all * width;
        if (wide < 0.5) continue;
        shown.push({ frame, left, wide, row });
        lay(frame.down, left, row + 1);
        left += wide;
      }
    };
    const above = [];
    for (let frame = this.zoom?.up; frame; frame = frame.up) above.unshift(frame);
    above.forEach((frame, row) => shown.push({ frame, left: 0, wide: width, row, above: true }));
    lay(roots, 0, above.length);
    return shown;
  }

  draw() {
    const width = Math.max(this.box.clientWidth, 300);
    const shown = this.layout(width);
    const rows = 1 + shown.reduce((most, { row }) => Math.max(most, row), 0);
    this.svg.setAttribute("viewBox", `0 0 ${width} ${rows * FLAME_ROW}`);
    this.svg.setAttribute("height", rows * FLAME_ROW);
    if (!shown.some(({ frame }) => frame === this.focus)) this.focus = shown[0]?.frame;
    this.svg.replaceChildren(...shown.map(place => this.group(place)));
    this.sides.forEach((button, place) =>
      button.setAttribute("aria-pressed", (place === 0) === (this.side === 1)));
    this.whole.disabled = !this.zoom;
  }

  group({ frame, left, wide, row, above }) {
    const kind = frame.change > 0 ? " worse" : frame.change < 0 ? " better" : "";
    const strength = Math.abs(frame.change);
    const group = drawing("g", { "data-place": frame.place, role: "treeitem",
      "aria-level": frame.depth + 1, "aria-label": flameWords(this.flame, frame),
      tabindex: frame === this.focus ? 0 : -1,
      class: `frame${kind}${above ? " above" : ""}${this.found?.(frame) ? " found" : ""}` });
    group.style.setProperty("--a", `${Math.round(20 + 30 * strength)}%`);
    group.append(drawing("rect", { x: left.toFixed(1), y: row * FLAME_ROW,
      width: Math.max(wide - 0.5, 0.5).toFixed(1), height: FLAME_ROW - 1 }));
    const letters = Math.floor((wide - 6) / FLAME_LETTER);
    if (letters > 2) {
      group.append(drawing("text", { x: (left + 3).toFixed(1), y: row * FLAME_ROW + 13 },
        frame.name.slice(0, letters)));
    }
    return group;
  }

  key(event) {
    const frame = this.focus;
    const beside = step => {
      const row = (frame.up ? frame.up.down : this.frames.filter(it => !it.up))
        .filter(it => $(`g[data-place="${it.place}"]`, this.svg))
        .sort((a, b) => a.name < b.name ? -1 : 1);
      return row[row.indexOf(frame) + step];
    };
    const widest = () => [...frame.down].sort((a, b) => b.times[this.side] - a.times[this.side])[0];
    const next = { ArrowUp: () => frame.up, ArrowDown: widest, ArrowLeft: () => beside(-1),
      ArrowRight: () => beside(1) }[event.key];
    if (next) {
      const to = next();
      const group = to && $(`g[data-place="${to.place}"]`, this.svg);
      if (group) {
        $(`g[data-place="${frame.place}"]`, this.svg).setAttribute("tabindex", -1);
        group.setAttribute("tabindex", 0);
        this.focus = to;
        group.focus();
        this.say(to);
      }
    } else if (event.key === "Enter" || event.key === " ") this.zoomTo(frame);
    else if (event.key === "Escape" && this.zoom) this.zoomTo(null);
    else return;
    event.preventDefault();
  }
}

// Drawn when they come into view.
const flamesSeen = new IntersectionObserver(entries => {
  for (const { target, isIntersecting } of entries) {
    if (!isIntersecting) continue;
    flamesSeen.unobserve(target);
    drawFlame(target);
  }
}, { rootMargin: "200px" });

function drawFlame(box) {
  box.graph ??= new FlameGraph(box);
}

function watchFlames(root) {
  for (const box of $$("figure[data-flame]", root)) flamesSeen.observe(box);
}
