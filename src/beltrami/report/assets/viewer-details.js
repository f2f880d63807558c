// What the viewer says of nodes: the text under the pointer, the panel of a chosen node, the search, and CSV.
const FORMULA = /^[=+\-@\t\r\n]/; // a spreadsheet computes a text that begins so
const MATCHES = 8; // of a search that are listed
const TIP_NEIGHBOURS = 3; // that are listed under the pointer

function element(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name in made) made[name] = value;
    else made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

function csvField(value) {
  if (value === null || value === undefined) return "";
  if (typeof value === "number") return String(value);
  const safe = FORMULA.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

function nodesAsCsv(flow, nodes) {
  const { id, label, predicted, confidence, part, parts } = flow.nodes;
  const head = ["node", "label", "predicted", ...(confidence ? ["probability"] : []), "part"];
  const cell = (value) => (value === null || flow.kind === "numbers" ? value : flow.nameOf(value));
  const rows = nodes.map((node) => [
    id[node],
    cell(label[node]),
    cell(predicted[node]),
    ...(confidence ? [confidence[node]] : []),
    parts[part[node]],
  ]);
  return [head, ...rows].map((row) => `${row.map(csvField).join(",")}\r\n`).join("");
}

function download(name, content) {
  const link = element("a", { href: URL.createObjectURL(new Blob([content], { type: "text/csv" })), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

function percent(value) {
  return `${(100 * value).toFixed(1)}%`;
}

function shellWord(text) {
  return /^[\w./-]+$/.test(text) && !text.startsWith("-") ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

function facts(rows) {
  return element(
    "dl",
    { className: "node-facts" },
    ...rows.map(([name, value]) => element("div", {}, element("dt", {}, name), element("dd", {}, value))),
  );
}

class Details {
  constructor(flow, panel, { choose }) {
    this.flow = flow;
    this.panel = panel;
    this.choose = choose;
    this.node = -1;
    this.explained = new Map(Object.entries(flow.reasons).map(([number, found]) => [Number(number), found]));
  }

  // The text about a node under the pointer: its name, then lines.
  lines(node, at) {
    const { flow } = this;
    const now = flow.kind === "numbers" ? "" : `, ${percent(flow.confidenceAt(node, at))}`;
    const predicted = flow.predictedAt(node, at);
    const name = flow.kind === "numbers" ? formatNumber(predicted) : flow.names[predicted];
    const found = flow.neighbours(node, flow.timeAt(at));
    const sources = found.slice(0, TIP_NEIGHBOURS).map(({ other, receives }) => `receives ${formatNumber(receives)} from ${flow.nodes.id[other]}`);
    const more = found.length > TIP_NEIGHBOURS ? [`and from ${(found.length - TIP_NEIGHBOURS).toLocaleString("en")} more`] : [];
    return [flow.nodes.id[node], `label ${flow.nameOf(flow.nodes.label[node])}`, `predicted ${name}${now} at this time`, ...sources, ...more];
  }

  show(node, at) {
    this.node = node;
    this.panel.hidden = node < 0;
    if (node < 0) return;
    const { flow } = this;
    const { id, label, predicted, part, parts, degree, confidence, set, interval } = flow.nodes;
    const rows = [
      ["label", flow.nameOf(label[node])],
      ["predicted", predicted[node] === null ? "nothing: no label is in its part of the graph" : flow.nameOf(predicted[node])],
    ];
    if (confidence) rows.push(["probability", percent(confidence[node])]);
    if (set) rows.push(["prediction set", set[node].map((k) => flow.names[k]).join(", ") || "empty"]);
    if (interval) rows.push(["interval", interval[node].map(formatNumber).join(" to ")]);
    rows.push(["part", parts[part[node]]], ["degree", String(degree[node])]);
    this.neighbourList = element("div", {});
    this.reasons = element("div", {});
    const close = element("button", { type: "button", className: "close", "aria-label": "Close" }, "\u00d7");
    close.addEventListener("click", () => this.choose(-1));
    const head = element("div", { className: "card-head" }, element("h3", { tabIndex: -1 }, id[node]), close);
    this.panel.replaceChildren(head, facts(rows), this.neighbourList, this.reasons);
    this.showNeighbours(at);
    this.showReasons(node);
  }

  showNeighbours(at) {
    if (this.node < 0) return;
    const { flow } = this;
    const found = flow.neighbours(this.node, flow.timeAt(at));
    const key = `${this.node} ${flow.meshAt(flow.timeAt(at))} ${flow.weightTimes === 1 ? "" : at.toFixed(1)}`;
    if (key === this.shownNeighbours && this.neighbourList.childElementCount) return;
    this.shownNeighbours = key;
    const focused = this.neighbourList.contains(document.activeElement) ? document.activeElement.dataset.node : null;
    const items = found.slice(0, NEIGHBOURS).map(({ other, receives }) => {
      const name = element("button", { type: "button", className: "link" }, flow.nodes.id[other]);
      name.dataset.node = other;
      name.addEventListener("click", () => this.choose(other));
      return element("tr", {}, element("th", { scope: "row" }, name), element("td", { className: "number" }, formatNumber(receives)));
    });
    const more = found.length > NEIGHBOURS ? `, the strongest ${NEIGHBOURS} of ${found.length}` : "";
    const caption = found.length ? `Receives from${more}` : "Receives from no other node";
    const head = element("thead", {}, element("tr", {}, element("th", { scope: "col" }, "node"), element("th", { scope: "col", className: "number" }, "diffusivity")));
    const table = element("table", {}, element("caption", {}, caption), ...(items.length ? [head] : []), element("tbody", {}, ...items));
    this.neighbourList.replaceChildren(table);
    if (focused) this.neighbourList.querySelector(`[data-node="${focused}"]`)?.focus();
  }

  async showReasons(node) {
    const { flow } = this;
    const number = flow.nodes.number[node];
    if (this.explained.has(number)) return this.fillReasons(this.explained.get(number));
    if (!flow.explainAt) {
      const command = `beltrami explain ${shellWord(flow.folder)} ${shellWord(flow.nodes.id[node])}`;
      const watch = `beltrami watch ${shellWord(flow.folder)}`;
      this.reasons.replaceChildren(
        element("h4", {}, "Where the prediction came from"),
        element("p", {}, "This page explains only the nodes that it lists. To explain this one, run ", element("code", {}, command), ", or run ", element("code", {}, watch), " and click the node."),
      );
      return undefined;
    }
    this.reasons.replaceChildren(element("p", { role: "status" }, "Explaining\u2026"));
    try {
      const answer = await fetch(`${flow.explainAt}${number}`);
      if (!answer.ok) throw new Error(await answer.text());
      this.explained.set(number, await answer.json());
      if (this.node === node) this.fillReasons(this.explained.get(number));
    } catch (error) {
      const told = error instanceof TypeError ? "The server does not answer: is `beltrami watch` still running?" : error.message;
      if (this.node === node) this.reasons.replaceChildren(element("p", { role: "status" }, told));
    }
    return undefined;
  }

  fillReasons(found) {
    const against = found.other ? `${found.predicted} over ${found.other} by ${formatNumber(found.margin)}` : `${found.predicted}: ${formatNumber(found.margin)}`;
    const share = (value) => `${formatNumber(value)}${found.margin ? ` (${percent(value / found.margin)})` : ""}`;
    const rows = found.nodes.map(([number, name, label, value]) =>
      element("tr", {}, element("th", { scope: "row" }, this.nodeButton(number, name)), element("td", {}, label), element("td", { className: "number" }, share(value))),
    );
    const edges = found.edges.map(([, from, , to, value]) =>
      element("tr", {}, element("th", { scope: "row" }, `${from} \u2192 ${to}`), element("td", { className: "number" }, share(value))),
    );
    this.reasons.replaceChildren(
      element("h4", {}, "Where the prediction came from"),
      element("p", {}, `${against} (${found.method}).`),
      element("table", {}, element("caption", {}, "Shares of nodes"), element("tbody", {}, ...rows)),
      ...(edges.length ? [element("table", {}, element("caption", {}, "Shares of edges"), element("tbody", {}, ...edges))] : []),
    );
  }

  nodeButton(number, name) {
    const drawn = this.flow.drawnAt.get(number);
    if (drawn === undefined) return name;
    const button = element("button", { type: "button", className: "link" }, name);
    button.addEventListener("click", () => this.choose(drawn));
    return button;
  }
}

// A search by the names of nodes: a text field with a list of matches.
class Search {
  constructor(flow, input, list, { choose }) {
    this.flow = flow;
    this.input = input;
    this.list = list;
    this.choose = choose;
    this.names = flow.nodes.id.map((id) => id.toLowerCase());
    this.active = -1;
    input.addEventListener("input", () => this.find());
    input.addEventListener("keydown", (event) => this.key(event));
    input.addEventListener("blur", () => this.close());
  }

  find() {
    const asked = this.input.value.trim().toLowerCase();
    const ranked = [[], [], []]; // equal names first, then those that begin so, then those that contain it
    for (let node = 0; asked && node < this.names.length; node++) {
      const place = this.names[node].indexOf(asked);
      if (place >= 0) ranked[this.names[node] === asked ? 0 : place === 0 ? 1 : 2].push(node);
    }
    this.found = ranked.flat().slice(0, MATCHES);
    const items = this.found.map((node, k) => {
      const item = element("li", { role: "option", id: `viewer-match-${k}`, "aria-selected": "false" }, this.flow.nodes.id[node]);
      item.addEventListener("pointerdown", (event) => {
        event.preventDefault();
        this.take(k);
      });
      return item;
    });
    const none = asked && !items.length ? [element("li", { role: "option", "aria-disabled": "true" }, "No node has this name")] : [];
    this.list.replaceChildren(...items, ...none);
    this.list.hidden = !asked;
    this.input.setAttribute("aria-expanded", String(!this.list.hidden));
    this.mark(items.length ? 0 : -1);
  }

  mark(place) {
    this.active = place;
    Array.from(this.list.children).forEach((item, k) => item.setAttribute("aria-selected", String(k === place)));
    if (place >= 0) this.input.setAttribute("aria-activedescendant", `viewer-match-${place}`);
    else this.input.removeAttribute("aria-activedescendant");
  }

  key(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && this.found?.length) this.mark((this.active + step + this.found.length) % this.found.length);
    else if (event.key === "Enter" && this.active >= 0) this.take(this.active);
    else if (event.key === "Escape") this.close();
    else return;
    event.preventDefault();
  }

  take(place) {
    const node = this.found[place];
    this.input.value = this.flow.nodes.id[node];
    this.close();
    this.choose(node);
  }

  close() {
    this.list.hidden = true;
    this.active = -1;
    this.input.setAttribute("aria-expanded", "false");
    this.input.removeAttribute("aria-activedescendant");
  }
}
