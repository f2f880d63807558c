// The picture on the GPU. Data is uploaded once; moving in time or in the picture sets uniforms alone.
const CIRCLE = 128; // sides of the disc's circle
const FEW = 2000; // edges that are drawn in any case
const SLOW = 26; // milliseconds between frames above which fewer edges are drawn while something moves
const FAST = 19;

class Picture {
  constructor(canvas, flow) {
    this.canvas = canvas;
    this.flow = flow;
    this.options = { alpha: true, antialias: false, premultipliedAlpha: true };
    this.gl = canvas.getContext("webgl2", this.options);
    this.view = { zoom: 1, x: 0.5, y: 0.5 }; // y upwards, as in the square
    this.state = { at: 0, mode: "label", only: -1, hovered: -1, chosen: -1, edges: 0 };
    this.colours = {};
    this.focusKey = "";
    this.movingEdges = Infinity;
    if (this.gl) this.build();
  }

  get usable() {
    return this.gl !== null && !this.gl.isContextLost();
  }

  build() {
    const { gl, flow } = this;
    this.edges = makeProgram(gl, EDGE_VERTEX, LINE_FRAGMENT);
    this.paths = makeProgram(gl, PATH_VERTEX, LINE_FRAGMENT);
    this.points = makeProgram(gl, NODE_VERTEX, NODE_FRAGMENT);
    this.frames = makeTexture(gl, 0, flow.positions, flow.count, flow.frames);
    this.values = makeTexture(gl, 1, flow.values, flow.count, flow.frames);
    this.allEdges = this.edgeArray(flow.pairs, this.fourWeights(flow.weights), flow.changes);
    this.focusEdges = this.edgeArray(new Uint16Array(0), new Int16Array(0), new Uint8Array(0));
    this.focusKey = "";
    this.nodeArray = gl.createVertexArray();
    this.factsBuffer = gl.createBuffer();
    gl.bindVertexArray(this.nodeArray);
    gl.bindBuffer(gl.ARRAY_BUFFER, this.factsBuffer);
    gl.enableVertexAttribArray(this.points.facts);
    gl.vertexAttribIPointer(this.points.facts, 4, gl.UNSIGNED_SHORT, 0, 0);
    this.pathArray = gl.createVertexArray();
    gl.enable(gl.BLEND);
    gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
    this.setSelected(new Set());
  }

  // Weights that do not change in time are stored once, and drawn as both ends.
  fourWeights(weights) {
    if (this.flow.weightTimes === 2) return weights;
    const found = new Int16Array(2 * weights.length);
    weights.forEach((weight, k) => found.fill(weight, 2 * k, 2 * k + 2));
    return found;
  }

  edgeArray(pairs, weights, changes) {
    const { gl, edges } = this;
    const array = gl.createVertexArray();
    gl.bindVertexArray(array);
    const buffers = [pairs, weights, changes].map((content) => {
      const buffer = gl.createBuffer();
      gl.bindBuffer(gl.ARRAY_BUFFER, buffer);
      gl.bufferData(gl.ARRAY_BUFFER, content, gl.STATIC_DRAW);
      return buffer;
    });
    for (const place of [edges.pair, edges.weight, edges.change]) {
      gl.enableVertexAttribArray(place);
      gl.vertexAttribDivisor(place, 1);
    }
    return { array, buffers, count: pairs.length / 2 };
  }

  // Draw from the given pair on; there is no first instance in WebGL2, so that the pointers move.
  pointEdges({ array, buffers }, first) {
    const { gl, edges } = this;
    gl.bindVertexArray(array);
    gl.bindBuffer(gl.ARRAY_BUFFER, buffers[0]);
    gl.vertexAttribIPointer(edges.pair, 2, gl.UNSIGNED_SHORT, 4, 4 * first);
    gl.bindBuffer(gl.ARRAY_BUFFER, buffers[1]);
    gl.vertexAttribPointer(edges.weight, 4, gl.SHORT, true, 8, 8 * first);
    gl.bindBuffer(gl.ARRAY_BUFFER, buffers[2]);
    gl.vertexAttribIPointer(edges.change, 1, gl.UNSIGNED_BYTE, 1, first);
  }

  setSelected(selected) {
    const { gl, flow } = this;
    const { label } = flow.nodes;
    const facts = new Uint16Array(4 * flow.count);
    for (let node = 0; node < flow.count; node++) {
      const known = label[node] !== null;
      facts[4 * node] = !known ? 0 : this.labelNumber(label[node]);
      facts[4 * node + 1] = Math.round(MOST * (flow.errorOf(node) ?? 0));
      facts[4 * node + 2] = Number(known);
      facts[4 * node + 3] = Number(selected.has(node));
    }
    gl.bindBuffer(gl.ARRAY_BUFFER, this.factsBuffer);
    gl.bufferData(gl.ARRAY_BUFFER, facts, gl.STATIC_DRAW);
  }

  labelNumber(label) {
    const { kind, range } = this.flow;
    if (kind === "numbers") return Math.round((MOST * (label - range[0])) / (range[1] - range[0]));
    return kind === "labels" ? (label[0] ?? 0) : label;
  }

  resize(width, height, ratio) {
    this.width = width;
    this.height = height;
    this.ratio = ratio;
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
  }

  // Pixels of the page for the side of the square, and the place of its upper left corner.
  frame() {
    const side = Math.min(this.width, this.height) * this.view.zoom;
    return { side, left: this.width / 2 - this.view.x * side, top: this.height / 2 - (1 - this.view.y) * side };
  }

  toPage([x, y]) {
    const { side, left, top } = this.frame();
    return [left + x * side, top + (1 - y) * side];
  }

  fromPage([x, y]) {
    const { side, left, top } = this.frame();
    return [(x - left) / side, 1 - (y - top) / side];
  }

  get radius() {
    const plain = Math.min(Math.max(150 / Math.sqrt(this.flow.count), 1.7), 7);
    return plain * Math.min(Math.max(this.view.zoom, 0.5) ** 0.5, 4);
  }

  // Fewer edges while something moves and frames are late; more again when there is time.
  noteFrame(milliseconds) {
    if (milliseconds > SLOW) this.movingEdges = Math.max(FEW, Math.min(this.movingEdges, this.state.edges) / 1.5);
    else if (milliseconds < FAST) this.movingEdges *= 1.1;
  }

  draw({ moving = false } = {}) {
    const { gl, flow, state, colours } = this;
    const t = flow.timeAt(state.at);
    const mesh = flow.meshAt(t);
    gl.viewport(0, 0, this.canvas.width, this.canvas.height);
    gl.clearColor(0, 0, 0, 0);
    gl.clear(gl.COLOR_BUFFER_BIT);
    const focus = state.hovered >= 0 ? state.hovered : state.chosen;
    if (flow.disc) this.drawPath(-1, CIRCLE, colours.muted, 1, 0.6);
    if (mesh >= 0) {
      const { first, count } = flow.meshes[mesh];
      const drawn = Math.min(count, state.edges, moving ? Math.ceil(this.movingEdges) : Infinity);
      const strength = Math.min(Math.max(Math.sqrt(1000 / Math.max(drawn, 1)), 0.1), 0.8) * (focus < 0 ? 1 : 0.5);
      this.drawEdges(this.allEdges, first, drawn, colours.muted, strength, flow.meshPart(mesh, t));
      this.drawnEdges = drawn;
      if (focus >= 0) {
        this.loadFocus(focus, mesh);
        this.drawEdges(this.focusEdges, 0, this.focusEdges.count, colours.accent, 1.2, flow.meshPart(mesh, t));
      }
    }
    if (focus >= 0) this.drawPath(focus, flow.last, colours.ink, 1.5, 0.8);
    this.drawNodes(-1);
    for (const node of new Set([state.chosen, state.hovered])) if (node >= 0) this.drawNodes(node);
  }

  // The edges of the node in focus have a small buffer, filled when the node or the graph changes.
  loadFocus(node, mesh) {
    const key = `${node} ${mesh}`;
    if (key === this.focusKey) return;
    this.focusKey = key;
    const { gl, flow } = this;
    const found = Array.from(flow.pairsOf(node, mesh));
    const pick = (source, width) => found.flatMap((k) => Array.from(source.subarray(width * k, width * (k + 1))));
    const weights = this.fourWeights(Int16Array.from(pick(flow.weights, 2 * flow.weightTimes)));
    const contents = [Uint16Array.from(pick(flow.pairs, 2)), weights, Uint8Array.from(pick(flow.changes, 1))];
    contents.forEach((content, k) => {
      gl.bindBuffer(gl.ARRAY_BUFFER, this.focusEdges.buffers[k]);
      gl.bufferData(gl.ARRAY_BUFFER, content, gl.DYNAMIC_DRAW);
    });
    this.focusEdges.count = found.length;
  }

  use(program) {
    const { gl, ratio, canvas } = this;
    const { low, high, part } = this.flow.frame(this.state.at);
    const { side, left, top } = this.frame();
    gl.useProgram(program.program);
    gl.uniform1i(program.frames, 0);
    gl.uniform1i(program.low, low);
    gl.uniform1i(program.high, high);
    gl.uniform1f(program.part, part);
    gl.uniform2f(program.size, canvas.width, canvas.height);
    gl.uniform3f(program.view, side * ratio, left * ratio, top * ratio);
  }

  drawEdges(array, first, count, colour, strength, meshPart) {
    if (!count) return;
    const { gl, edges, flow } = this;
    this.use(edges);
    gl.uniform3fv(edges.colour, colour);
    gl.uniform1f(edges.strength, Math.min(strength, 1.3));
    gl.uniform1f(edges.strong, flow.strongWeight / flow.largestWeight);
    gl.uniform1f(edges.meshPart, meshPart);
    gl.uniform1f(edges.ratio, this.ratio);
    this.pointEdges(array, first);
    gl.drawArraysInstanced(gl.TRIANGLE_STRIP, 0, 4, count);
  }

  drawPath(node, count, colour, width, strength) {
    if (!count) return;
    const { gl, paths, flow } = this;
    this.use(paths);
    const centre = flow.centre.map((c) => 0.5 - c / (2 * flow.half));
    gl.uniform1i(paths.node, node);
    gl.uniform3f(paths.disc, ...centre, 1 / (2 * flow.half));
    gl.uniform3fv(paths.colour, colour);
    gl.uniform1f(paths.width, width * this.ratio);
    gl.uniform1f(paths.strength, strength);
    gl.bindVertexArray(this.pathArray);
    gl.drawArraysInstanced(gl.TRIANGLE_STRIP, 0, 4, count);
  }

  drawNodes(node) {
    const { gl, points, state, colours, flow } = this;
    this.use(points);
    gl.uniform1i(points.values, 1);
    gl.uniform1i(points.mode, MODES[state.mode]);
    gl.uniform1i(points.only, state.only);
    gl.uniform1i(points.numbers, Number(flow.kind === "numbers"));
    for (const name of ["palette", "scale", "doubt", "unknown", "wrong", "right", "ground", "ink"]) {
      gl.uniform3fv(points[name], colours[name]);
    }
    gl.uniform1f(points.radius, this.radius * this.ratio);
    gl.uniform1i(points.node, node);
    gl.bindVertexArray(this.nodeArray);
    gl.drawArrays(gl.POINTS, Math.max(node, 0), node < 0 ? flow.count : 1);
  }
}

function makeProgram(gl, vertex, fragment) {
  const program = gl.createProgram();
  for (const [type, source] of [[gl.VERTEX_SHADER, vertex], [gl.FRAGMENT_SHADER, fragment]]) {
    const shader = gl.createShader(type);
    gl.shaderSource(shader, source);
    gl.compileShader(shader);
    if (!gl.getShaderParameter(shader, gl.COMPILE_STATUS)) throw new Error(gl.getShaderInfoLog(shader));
    gl.attachShader(program, shader);
  }
  gl.linkProgram(program);
  if (!gl.getProgramParameter(program, gl.LINK_STATUS)) throw new Error(gl.getProgramInfoLog(program));
  const found = { program };
  for (let k = 0; k < gl.getProgramParameter(program, gl.ACTIVE_UNIFORMS); k++) {
    const { name } = gl.getActiveUniform(program, k);
    found[name.replace("[0]", "")] = gl.getUniformLocation(program, name);
  }
  for (let k = 0; k < gl.getProgramParameter(program, gl.ACTIVE_ATTRIBUTES); k++) {
    const { name } = gl.getActiveAttrib(program, k);
    found[name] = gl.getAttribLocation(program, name);
  }
  return found;
}

// Two numbers of 16 bits for each node and frame, a layer for each frame.
function makeTexture(gl, unit, content, count, frames) {
  const width = Math.min(count, ROW);
  const height = Math.ceil(count / ROW);
  const padded = new Uint16Array(2 * width * height * frames);
  for (let k = 0; k < frames; k++) {
    padded.set(content.subarray(2 * k * count, 2 * (k + 1) * count), 2 * k * width * height);
  }
  gl.activeTexture(gl.TEXTURE0 + unit);
  gl.bindTexture(gl.TEXTURE_2D_ARRAY, gl.createTexture());
  for (const name of [gl.TEXTURE_MIN_FILTER, gl.TEXTURE_MAG_FILTER]) {
    gl.texParameteri(gl.TEXTURE_2D_ARRAY, name, gl.NEAREST);
  }
  const { RG16UI, RG_INTEGER, UNSIGNED_SHORT } = gl;
  gl.pixelStorei(gl.UNPACK_ALIGNMENT, 1);
  gl.texImage3D(gl.TEXTURE_2D_ARRAY, 0, RG16UI, width, height, frames, 0, RG_INTEGER, UNSIGNED_SHORT, padded);
}
