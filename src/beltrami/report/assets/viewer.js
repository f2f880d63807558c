// The viewer of a flow: controls, pointer, keyboard. `Flow` has the data, `Picture` draws, `Details` tells.
const SECONDS = 6; // from the first key frame to the last
const NEAR = 14; // pixels within which the pointer finds a node
const STEP = 40; // pixels of an arrow key
const MOST_ZOOM = 200;
const EDGES_AT_FIRST = 20000;

class Viewer {
  constructor(section) {
    this.section = section;
    this.flow = new Flow(JSON.parse(document.getElementById("flow-data").textContent));
    this.canvas = this.part("canvas");
    this.picture = new Picture(this.canvas, this.flow);
    if (!this.picture.usable) return;
    this.still = matchMedia("(prefers-reduced-motion: reduce)");
    this.selected = new Set();
    this.playing = false;
    this.lasso = null;
    section.classList.add("live");
    const choose = (node) => this.choose(node);
    this.details = new Details(this.flow, this.part(".node-panel"), { choose });
    this.search = new Search(this.flow, this.part("#viewer-search"), this.part("#viewer-matches"), { choose: (node) => this.goTo(node) });
    this.pointers = new Map();
    this.connectControls();
    this.connectPointer();
    this.connectKeys();
    this.connectContext();
    this.readColours();
    this.setMode(this.flow.nodes.label.filter((label) => label !== null).length * 2 >= this.flow.count ? "label" : "predicted");
    this.setEdges(Math.min(EDGES_AT_FIRST, this.mostEdges));
    this.setTime(0);
    new ResizeObserver(() => this.resize()).observe(this.canvas.parentElement);
    this.resize();
    if (!this.still.matches) this.playWhenSeen();
  }

  part(selector) {
    return this.section.querySelector(selector);
  }

  get mostEdges() {
    return this.flow.meshes.reduce((most, { count }) => Math.max(most, count), 0);
  }

  // ---- controls ----

  connectControls() {
    this.slider = this.part("#viewer-time");
    this.slider.max = String(Math.max(this.flow.last, 1) * 100);
    this.slider.addEventListener("input", () => {
      this.pause();
      this.setTime(Number(this.slider.value) / 100);
    });
    this.playButton = this.part(".play");
    this.playButton.addEventListener("click", () => this.toggle());
    this.edgeSlider = this.part("#viewer-edges");
    this.edgeSlider.addEventListener("input", () => this.setEdges(this.mostEdges * (Number(this.edgeSlider.value) / 100) ** 2));
    this.modeBox = this.part("#viewer-colour");
    this.modeBox.addEventListener("change", () => this.setMode(this.modeBox.value));
    this.lassoButton = this.part(".lasso-button");
    this.lassoButton.addEventListener("click", () => this.setLasso(this.lassoButton.getAttribute("aria-pressed") !== "true"));
    this.part(".select-view").addEventListener("click", () => this.selectInside((x, y) => x >= 0 && y >= 0 && x <= this.picture.width && y <= this.picture.height));
    this.part(".zoom-in").addEventListener("click", () => this.zoom(1.5));
    this.part(".zoom-out").addEventListener("click", () => this.zoom(1 / 1.5));
    this.part(".reset").addEventListener("click", () => this.resetView());
    this.part(".save-selected").addEventListener("click", () => download("nodes.csv", nodesAsCsv(this.flow, [...this.selected].sort((a, b) => a - b))));
    this.part(".clear-selected").addEventListener("click", () => this.select([]));
    new MutationObserver(() => this.readColours()).observe(document.documentElement, { attributeFilter: ["data-theme"] });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.readColours());
  }

  setTime(at) {
    this.picture.state.at = Math.min(Math.max(at, 0), this.flow.last);
    const t = this.flow.timeAt(this.picture.state.at);
    const digits = this.flow.times[this.flow.last] >= 10 ? 1 : 2;
    const said = `t = ${t.toFixed(digits)} of ${this.flow.times[this.flow.last].toFixed(digits)}`;
    this.slider.value = String(Math.round(this.picture.state.at * 100));
    this.slider.setAttribute("aria-valuetext", said);
    this.part(".time-said").textContent = [said, this.flow.scoreAt(t)].filter(Boolean).join(" \u00b7 ");
    this.details.showNeighbours(this.picture.state.at);
    this.redraw({ moving: true });
  }

  setEdges(count) {
    this.picture.state.edges = Math.round(count);
    this.edgeSlider.value = String(Math.round(100 * Math.sqrt(count / Math.max(this.mostEdges, 1))));
    const [drawn, all] = [this.picture.state.edges, this.mostEdges];
    const said = drawn === all ? `all ${all.toLocaleString("en")}` : `the strongest ${drawn.toLocaleString("en")} of ${all.toLocaleString("en")}`;
    this.edgeSlider.setAttribute("aria-valuetext", said);
    this.edgeSlider.disabled = !this.mostEdges;
    this.part(".edges-said").textContent = said;
    this.redraw();
  }

  setMode(mode) {
    this.picture.state.mode = mode;
    this.picture.state.only = -1;
    this.modeBox.value = mode;
    this.showLegend();
    this.redraw();
  }

  showLegend() {
    const legend = this.part(".legend");
    const { mode } = this.picture.state;
    const { kind, names, range } = this.flow;
    const swatch = (style, shape = 0) => element("span", { className: `swatch shape${shape}`, style: `--s: ${style}`, "aria-hidden": "true" });
    const ramp = (name, low, high) => [element("span", {}, low), element("span", { className: `ramp ${name}`, "aria-hidden": "true" }), element("span", {}, high)];
    if (mode === "confidence") legend.replaceChildren(...ramp("doubt", "0%", "100%"));
    else if (mode === "error" && kind === "numbers") legend.replaceChildren(...ramp("doubt", `error ${formatNumber(this.flow.largestError())}`, "0"));
    else if (mode === "error") {
      const items = [["right", "--right", 0], ["wrong", "--wrong", 1], ["label unknown", "--unknown", 0]];
      legend.replaceChildren(...items.map(([name, colour, shape]) => element("span", { className: "key" }, swatch(`var(${colour})`, shape), name)));
    } else if (kind === "numbers") legend.replaceChildren(...ramp("scale", formatNumber(range[0]), formatNumber(range[1])));
    else {
      const items = names.map((name, k) => {
        const button = element("button", { type: "button", "aria-pressed": "false", title: "Show this class alone" }, swatch(`var(--c${k % COLOURS})`, Math.floor(k / COLOURS) % 4), name);
        button.addEventListener("click", () => this.showOnly(this.picture.state.only === k ? -1 : k));
        return button;
      });
      const unknown = mode === "label" && this.flow.nodes.label.includes(null) ? [element("span", { className: "key" }, swatch("var(--unknown)"), "unknown")] : [];
      legend.replaceChildren(...items, ...unknown);
    }
  }

  showOnly(group) {
    this.picture.state.only = group;
    this.part(".legend").querySelectorAll("button").forEach((button, k) => button.setAttribute("aria-pressed", String(k === group)));
    this.redraw();
  }

  readColours() {
    const style = getComputedStyle(this.section);
    const colour = (name) => {
      const value = style.getPropertyValue(name).trim();
      return [1, 3, 5].map((k) => parseInt(value.slice(k, k + 2), 16) / 255);
    };
    const several = (name, count) => new Float32Array(Array.from({ length: count }, (_, k) => colour(`--${name}${k}`)).flat());
    const named = ["muted", "accent", "ink", "unknown", "wrong", "right"].map((name) => [name, colour(`--${name}`)]);
    Object.assign(this.picture.colours, Object.fromEntries(named), {
      ground: colour("--card"),
      palette: several("c", COLOURS),
      scale: several("scale", STOPS),
      doubt: several("doubt", STOPS),
    });
    this.redraw();
  }

  // ---- time ----

  toggle() {
    if (this.playing) this.pause();
    else this.play();
  }

  play() {
    if (this.picture.state.at >= this.flow.last) this.setTime(0);
    this.playing = true;
    this.playButton.textContent = "Pause";
    this.lastFrame = null;
    requestAnimationFrame((now) => this.advance(now));
  }

  pause() {
    this.playing = false;
    this.playButton.textContent = "Play";
    this.redraw();
  }

  advance(now) {
    if (!this.playing) return;
    if (this.lastFrame !== null) {
      const passed = now - this.lastFrame;
      this.setTime(this.picture.state.at + (Math.min(passed, 100) / 1000 / SECONDS) * Math.max(this.flow.last, 1));
    }
    this.lastFrame = now;
    if (this.picture.state.at >= this.flow.last) this.pause();
    else requestAnimationFrame((next) => this.advance(next));
  }

  playWhenSeen() {
    const seen = new IntersectionObserver((entries) => {
      if (!entries.some((entry) => entry.isIntersecting)) return;
      seen.disconnect();
      if (this.picture.state.at === 0) this.play();
    }, { threshold: 0.5 });
    seen.observe(this.canvas);
  }

  // Draw in the next frame: with fewer edges while something moves, with all a little later.
  redraw({ moving = false } = {}) {
    this.moving = moving;
    clearTimeout(this.settle);
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame((start) => {
      this.waiting = false;
      if (!this.picture.usable || !this.picture.width) return;
      const moves = this.moving || this.playing;
      this.picture.draw({ moving: moves });
      if (!moves) return;
      requestAnimationFrame((next) => this.picture.noteFrame(next - start)); // how long the drawing took
      if (!this.playing) this.settle = setTimeout(() => this.redraw(), 150);
    });
  }

  resize() {
    const { clientWidth, clientHeight } = this.canvas;
    if (!clientWidth || !clientHeight) return;
    this.picture.resize(clientWidth, clientHeight, Math.min(devicePixelRatio || 1, 2));
    this.redraw();
  }

  // ---- view ----

  zoom(factor, [x, y] = [this.picture.width / 2, this.picture.height / 2]) {
    const { view } = this.picture;
    const [before, zoom] = [this.picture.fromPage([x, y]), Math.min(Math.max(view.zoom * factor, 0.5), MOST_ZOOM)];
    view.zoom = zoom;
    const after = this.picture.fromPage([x, y]);
    this.pan(before[0] - after[0], before[1] - after[1]);
  }

  pan(x, y) {
    const { view } = this.picture;
    view.x = Math.min(Math.max(view.x + x, -0.5), 1.5);
    view.y = Math.min(Math.max(view.y + y, -0.5), 1.5);
    this.redraw({ moving: true });
  }

  resetView() {
    Object.assign(this.picture.view, { zoom: 1, x: 0.5, y: 0.5 });
    this.redraw();
  }

  goTo(node) {
    const [x, y] = this.flow.place(node, this.picture.state.at);
    const { view } = this.picture;
    Object.assign(view, { x, y, zoom: Math.max(view.zoom, 2) });
    this.choose(node);
  }

  // ---- nodes ----

  nodeAt(x, y) {
    return this.flow.nearest(this.picture.fromPage([x, y]), NEAR / this.picture.frame().side, this.picture.state.at);
  }

  hover(node, x, y) {
    const tip = this.part(".tip");
    tip.hidden = node < 0;
    if (node >= 0) {
      const [name, ...lines] = this.details.lines(node, this.picture.state.at);
      tip.replaceChildren(element("b", {}, name), ...lines.map((line) => element("span", {}, line)));
      const right = x > this.picture.width / 2;
      Object.assign(tip.style, { left: right ? "" : `${x + 14}px`, right: right ? `${this.picture.width - x + 14}px` : "", top: `${Math.max(Math.min(y + 10, this.picture.height - tip.offsetHeight - 8), 0)}px` });
    }
    if (node === this.picture.state.hovered) return;
    this.picture.state.hovered = node;
    this.redraw();
  }

  choose(node) {
    this.hover(-1); // the panel moves the picture away from under the pointer
    this.picture.state.chosen = node;
    this.details.show(node, this.picture.state.at);
    this.part(".said").textContent = node < 0 ? "" : `${this.flow.nodes.id[node]} is chosen; its facts are beside the picture.`;
    if (node < 0 && this.section.contains(document.activeElement)) this.canvas.focus({ preventScroll: true });
    this.redraw();
  }

  select(nodes) {
    this.selected = new Set(nodes);
    this.picture.setSelected(this.selected);
    const count = this.selected.size;
    this.part(".selection").hidden = !count;
    const said = `${count.toLocaleString("en")} ${count === 1 ? "node is" : "nodes are"} selected`;
    this.part(".count").textContent = said;
    this.part(".said").textContent = count ? said : "No node is selected";
    this.redraw();
  }

  selectInside(isInside) {
    const { at } = this.picture.state;
    const nodes = Array.from({ length: this.flow.count }, (_, node) => node);
    this.select(nodes.filter((node) => isInside(...this.picture.toPage(this.flow.place(node, at)))));
  }

  // ---- pointer and keys ----

  setLasso(on) {
    this.lassoButton.setAttribute("aria-pressed", String(on));
    this.canvas.classList.toggle("drawing", on);
  }

  connectPointer() {
    const { canvas, pointers } = this;
    const at = (event) => {
      const box = canvas.getBoundingClientRect();
      return [event.clientX - box.left, event.clientY - box.top];
    };
    canvas.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      canvas.setPointerCapture(event.pointerId);
      pointers.set(event.pointerId, at(event));
      this.moved = 0;
      if (this.lassoButton.getAttribute("aria-pressed") === "true" || event.shiftKey) this.lasso = [at(event)];
    });
    canvas.addEventListener("pointermove", (event) => {
      const place = at(event);
      if (!pointers.has(event.pointerId)) {
        if (event.pointerType !== "touch") this.hover(this.nodeAt(...place), ...place);
        return;
      }
      this.drag(event.pointerId, place, event.pointerType);
    });
    const end = (event) => {
      if (!pointers.delete(event.pointerId)) return;
      if (this.lasso) this.endLasso();
      else if (event.type === "pointerup" && this.moved < 4 && !pointers.size) this.choose(this.nodeAt(...at(event)));
    };
    canvas.addEventListener("pointerup", end);
    canvas.addEventListener("pointercancel", end);
    canvas.addEventListener("pointerleave", () => this.hover(-1));
    canvas.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && document.activeElement !== canvas) return; // the page scrolls until the picture is clicked
      event.preventDefault();
      this.zoom(Math.exp(-event.deltaY * (event.ctrlKey ? 0.01 : 0.002)), at(event));
    }, { passive: false });
  }

  drag(id, place, type) {
    const { pointers, picture } = this;
    const before = pointers.get(id);
    const [dx, dy] = [place[0] - before[0], place[1] - before[1]];
    this.moved += Math.hypot(dx, dy);
    const other = [...pointers.entries()].find(([key]) => key !== id)?.[1];
    pointers.set(id, place);
    if (this.lasso) return this.drawLasso(place);
    const { side } = picture.frame();
    if (other) {
      const length = (point) => Math.hypot(point[0] - other[0], point[1] - other[1]);
      this.zoom(length(place) / Math.max(length(before), 1), [(place[0] + other[0]) / 2, (place[1] + other[1]) / 2]);
      return this.pan(-dx / 2 / side, dy / 2 / side);
    }
    if (type === "touch") return undefined; // one finger scrolls the page
    return this.pan(-dx / side, dy / side);
  }

  drawLasso(place) {
    this.lasso.push(place);
    this.part(".lasso polygon").setAttribute("points", this.lasso.map((point) => point.join()).join(" "));
  }

  endLasso() {
    const polygon = this.lasso;
    this.lasso = null;
    this.part(".lasso polygon").setAttribute("points", "");
    this.setLasso(false);
    if (polygon.length > 2) this.selectInside((x, y) => isInside(polygon, x, y));
  }

  connectKeys() {
    const keys = {
      ArrowLeft: () => this.pan(-STEP / this.picture.frame().side, 0),
      ArrowRight: () => this.pan(STEP / this.picture.frame().side, 0),
      ArrowUp: () => this.pan(0, STEP / this.picture.frame().side),
      ArrowDown: () => this.pan(0, -STEP / this.picture.frame().side),
      "+": () => this.zoom(1.25),
      "=": () => this.zoom(1.25),
      "-": () => this.zoom(0.8),
      0: () => this.resetView(),
      " ": () => this.toggle(),
      ",": () => this.step(-0.25),
      ".": () => this.step(0.25),
      Home: () => this.step(-this.flow.last),
      End: () => this.step(this.flow.last),
      Escape: () => (this.picture.state.chosen >= 0 ? this.choose(-1) : this.select([])),
    };
    this.canvas.addEventListener("keydown", (event) => {
      if (!(event.key in keys) || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      keys[event.key]();
    });
    this.part(".node-panel").addEventListener("keydown", (event) => {
      if (event.key === "Escape") this.choose(-1);
    });
  }

  step(frames) {
    this.pause();
    this.setTime(this.picture.state.at + frames);
  }

  connectContext() {
    this.canvas.addEventListener("webglcontextlost", (event) => event.preventDefault());
    this.canvas.addEventListener("webglcontextrestored", () => {
      this.picture.build();
      this.picture.setSelected(this.selected);
      this.redraw();
    });
  }
}

function isInside(polygon, x, y) {
  let inside = false;
  for (let k = 0, before = polygon.length - 1; k < polygon.length; before = k++) {
    const [[x0, y0], [x1, y1]] = [polygon[k], polygon[before]];
    if (y0 > y !== y1 > y && x < ((x1 - x0) * (y - y0)) / (y1 - y0) + x0) inside = !inside;
  }
  return inside;
}

const section = document.getElementById("flow");
section.viewer = new Viewer(section);
