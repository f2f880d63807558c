// The data of the viewer: key frames, graphs and facts of nodes, read from the JSON of the page.
const MOST = 65535; // 16 bits
const NEIGHBOURS = 12; // that are listed

function decode(text, Type) {
  const bytes = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  return new Type(bytes.buffer);
}

class Flow {
  constructor(data) {
    Object.assign(this, data);
    this.positions = decode(data.positions, Uint16Array); // (K, n, 2)
    this.values = decode(data.values, Uint16Array); // (K, n, 2): prediction, confidence
    this.pairs = decode(data.pairs, Uint16Array); // (m, 2)
    this.weights = decode(data.weights, Int16Array); // (m, 2, weightTimes)
    this.changes = decode(data.changes, Uint8Array); // (m)
    this.count = this.nodes.id.length;
    this.frames = this.times.length;
    this.last = this.frames - 1;
    this.drawnAt = new Map(this.nodes.number.map((number, node) => [number, node]));
    this.adjacency = new Map();
  }

  // `at` is a place among the key frames, from 0 to the last one; nodes move on straight lines between them.
  frame(at) {
    const low = Math.min(Math.floor(at), Math.max(this.last - 1, 0));
    return { low, high: Math.min(low + 1, this.last), part: at - low };
  }

  timeAt(at) {
    const { low, high, part } = this.frame(at);
    return this.times[low] + part * (this.times[high] - this.times[low]);
  }

  // The place of a node in the square from 0 to 1.
  place(node, at) {
    const { low, high, part } = this.frame(at);
    const a = 2 * (low * this.count + node);
    const b = 2 * (high * this.count + node);
    const mix = (k) => (this.positions[a + k] * (1 - part) + this.positions[b + k] * part) / MOST;
    return [mix(0), mix(1)];
  }

  // The node nearest to a place in the square, within a distance; -1 for none.
  nearest([x, y], distance, at) {
    const { low, high, part } = this.frame(at);
    const { positions, count } = this;
    let [best, least] = [-1, (distance * MOST) ** 2];
    for (let node = 0, a = 2 * low * count, b = 2 * high * count; node < count; node++, a += 2, b += 2) {
      const dx = positions[a] * (1 - part) + positions[b] * part - x * MOST;
      const dy = positions[a + 1] * (1 - part) + positions[b + 1] * part - y * MOST;
      if (dx * dx + dy * dy < least) [best, least] = [node, dx * dx + dy * dy];
    }
    return best;
  }

  nearestFrame(at) {
    return Math.min(Math.round(at), this.last);
  }

  // The prediction at a time: a class, or a number.
  predictedAt(node, at) {
    const value = this.values[2 * (this.nearestFrame(at) * this.count + node)];
    return this.kind === "numbers" ? this.range[0] + (value / MOST) * (this.range[1] - this.range[0]) : value;
  }

  confidenceAt(node, at) {
    return this.values[2 * (this.nearestFrame(at) * this.count + node) + 1] / MOST;
  }

  meshAt(t) {
    const found = this.meshes.findIndex((mesh) => t < mesh.stop);
    return found < 0 ? this.meshes.length - 1 : found;
  }

  meshPart(mesh, t) {
    const { start, stop } = this.meshes[mesh];
    return stop > start ? Math.min(Math.max((t - start) / (stop - start), 0), 1) : 0;
  }

  // The diffusivity with which the first (side 0) or the second node (side 1) of a pair receives.
  weight(pair, side, part) {
    const first = this.weights[(2 * pair + side) * this.weightTimes];
    const last = this.weights[(2 * pair + side + 1) * this.weightTimes - 1];
    return ((first * (1 - part) + last * part) / 32767) * this.largestWeight;
  }

  // The pairs of each node in a graph, as compressed rows; computed at the first question.
  rows(mesh) {
    if (!this.adjacency.has(mesh)) {
      const { first, count } = this.meshes[mesh];
      const starts = new Uint32Array(this.count + 1);
      const ends = this.pairs.subarray(2 * first, 2 * (first + count));
      for (const node of ends) starts[node + 1] += 1;
      for (let node = 0; node < this.count; node++) starts[node + 1] += starts[node];
      const next = starts.slice();
      const pairs = new Uint32Array(2 * count);
      ends.forEach((node, k) => {
        pairs[next[node]++] = first + (k >> 1);
      });
      this.adjacency.set(mesh, { starts, pairs });
    }
    return this.adjacency.get(mesh);
  }

  pairsOf(node, mesh) {
    if (mesh < 0) return [];
    const { starts, pairs } = this.rows(mesh);
    return pairs.subarray(starts[node], starts[node + 1]);
  }

  // The neighbours from which a node receives most, with the weights of both directions.
  neighbours(node, t) {
    const mesh = this.meshAt(t);
    const part = mesh < 0 ? 0 : this.meshPart(mesh, t);
    const found = Array.from(this.pairsOf(node, mesh), (pair) => {
      const side = this.pairs[2 * pair] === node ? 0 : 1;
      const other = this.pairs[2 * pair + 1 - side];
      return { other, receives: this.weight(pair, side, part), sends: this.weight(pair, 1 - side, part) };
    });
    return found.sort((a, b) => Math.abs(b.receives) - Math.abs(a.receives));
  }

  nameOf(value) {
    if (value === null || value === undefined) return "unknown";
    if (this.kind === "numbers") return formatNumber(value);
    if (this.kind === "classes") return this.names[value];
    return value.length ? value.map((k) => this.names[k]).join(", ") : "no label";
  }

  isRight(node) {
    const { label, predicted } = this.nodes;
    if (this.kind === "numbers" || label[node] === null || predicted[node] === null) return null;
    return this.kind === "classes"
      ? label[node] === predicted[node]
      : label[node].join() === predicted[node].join();
  }

  // The difference of prediction and label, from 0 to 1; null where it is not known.
  errorOf(node) {
    const { label, predicted } = this.nodes;
    if (this.kind !== "numbers") return this.isRight(node) === null ? null : Number(!this.isRight(node));
    if (label[node] === null || predicted[node] === null) return null;
    return Math.min(Math.abs(label[node] - predicted[node]) / this.largestError(), 1);
  }

  largestError() {
    this.errorScale ??= this.nodes.label.reduce(
      (most, label, node) => (label === null ? most : Math.max(most, Math.abs(label - this.nodes.predicted[node]))),
      Number.MIN_VALUE,
    );
    return this.errorScale;
  }

  scoreAt(t) {
    if (!this.score) return "";
    const { times, values, name } = this.score;
    const k = Math.min(Math.max(times.findIndex((each) => each >= t), 1), times.length - 1);
    const part = Math.min(Math.max((t - times[k - 1]) / (times[k] - times[k - 1] || 1), 0), 1);
    const value = values[k - 1] * (1 - part) + values[k] * part;
    return `${name} ${this.kind === "numbers" ? formatNumber(value) : `${(100 * value).toFixed(1)}%`}`;
  }
}

function formatNumber(value) {
  if (value === 0) return "0";
  const size = Math.abs(value);
  return size >= 0.001 && size < 1e6 ? String(Number(value.toPrecision(3))) : value.toExponential(2);
}
