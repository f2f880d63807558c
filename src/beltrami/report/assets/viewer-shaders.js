// The programs of the GPU. Positions are in a texture of key frames, and `place` mixes two of them.
const ROW = 1024; // nodes in a row of the texture
const COLOURS = 12;
const STOPS = 5; // of a scale of colours
const MODES = { label: 0, predicted: 1, confidence: 2, error: 3 };

const PLACES = `#version 300 es
precision highp float;
precision highp int;
precision highp usampler2DArray;
uniform usampler2DArray frames;
uniform int low;
uniform int high;
uniform float part;
uniform vec2 size;   // of the picture, in pixels
uniform vec3 view;   // pixels of the square's side, and where its corner is

ivec3 cell(int node, int frame) { return ivec3(node & ${ROW - 1}, node >> 10, frame); }
vec2 frameOf(int node, int frame) { return vec2(texelFetch(frames, cell(node, frame), 0).rg) / 65535.0; }
vec2 pixels(vec2 place) { return view.yz + view.x * vec2(place.x, 1.0 - place.y); }
vec2 place(int node) { return pixels(mix(frameOf(node, low), frameOf(node, high), part)); }
vec4 clip(vec2 pixel) { return vec4(2.0 * pixel.x / size.x - 1.0, 1.0 - 2.0 * pixel.y / size.y, 0.0, 1.0); }

// One of the four corners of a line with a width; y is from -1 to 1 across it.
vec2 corner(vec2 a, vec2 b, float width, out float y) {
  vec2 along = b - a;
  float length = max(length(along), 1e-3);
  y = float(gl_VertexID & 1) * 2.0 - 1.0;
  vec2 across = vec2(-along.y, along.x) / length;
  return (gl_VertexID > 1 ? b : a) + across * y * (0.5 * width + 1.0);
}
`;

const LINE_FRAGMENT = `#version 300 es
precision highp float;
in float across;
in float alpha;
flat in float halfWidth;
uniform vec3 colour;
out vec4 result;
void main() {
  float inside = clamp(halfWidth + 0.5 - abs(across) * (halfWidth + 1.0), 0.0, 1.0);
  result = vec4(colour, 1.0) * alpha * inside;
}`;

const EDGE_VERTEX = `${PLACES}
in uvec2 pair;
in vec4 weight;      // received by the first and by the second node, at the start and at the end of the graph
in uint change;
uniform float meshPart;
uniform float strong;
uniform float strength;
uniform float ratio; // pixels of the device in a pixel of the page
out float across;
out float alpha;
flat out float halfWidth;
void main() {
  vec2 both = abs(mix(weight.xz, weight.yw, meshPart));
  float w = clamp(max(both.x, both.y) / strong, 0.0, 1.0);
  float width = ratio * mix(0.7, 1.6, w);
  halfWidth = 0.5 * width;
  alpha = strength * mix(0.14, 0.7, w);
  if ((change & 1u) != 0u) alpha *= smoothstep(0.0, 0.2, meshPart);
  if ((change & 2u) != 0u) alpha *= 1.0 - smoothstep(0.8, 1.0, meshPart);
  gl_Position = clip(corner(place(int(pair.x)), place(int(pair.y)), width, across));
}`;

// The way of one node through the key frames, or the circle of the disc.
const PATH_VERTEX = `${PLACES}
uniform int node;    // -1 for the circle
uniform vec3 disc;   // its centre and radius in the square
uniform float width;
uniform float strength;
out float across;
out float alpha;
flat out float halfWidth;
vec2 turn(int k) { return pixels(disc.xy + disc.z * vec2(cos(float(k) * 0.0490873852), sin(float(k) * 0.0490873852))); }
void main() {
  int k = gl_InstanceID;
  halfWidth = 0.5 * width;
  alpha = strength;
  vec2 a = node < 0 ? turn(k) : pixels(frameOf(node, k));
  vec2 b = node < 0 ? turn(k + 1) : pixels(frameOf(node, k + 1));
  gl_Position = clip(corner(a, b, width, across));
}`;

const NODE_VERTEX = `${PLACES}
in uvec4 facts;      // label, error, whether the label is known, whether the node is selected
uniform usampler2DArray values;
uniform int mode;
uniform int only;    // a class beside which others fade; -1 for all
uniform bool numbers;
uniform vec3 palette[${COLOURS}];
uniform vec3 scale[${STOPS}];
uniform vec3 doubt[${STOPS}];
uniform vec3 unknown;
uniform vec3 wrong;
uniform vec3 right;
uniform float radius;
uniform int node;    // that is drawn alone, and larger; -1 for all
flat out vec3 colour;
flat out float alpha;
flat out int shape;
flat out float halfSize;
flat out uint selected;

vec3 along(vec3 stops[${STOPS}], float value) {
  float place = clamp(value, 0.0, 1.0) * ${(STOPS - 1).toFixed(1)};
  int k = min(int(place), ${STOPS - 2});
  return mix(stops[k], stops[k + 1], place - float(k));
}

void main() {
  int id = gl_VertexID;
  uvec2 now = texelFetch(values, cell(id, part < 0.5 ? low : high), 0).rg;
  uvec2 before = texelFetch(values, cell(id, low), 0).rg;
  uvec2 after = texelFetch(values, cell(id, high), 0).rg;
  bool known = facts.z == 1u;
  int group = -1;
  shape = 0;
  alpha = 0.92;
  if (mode == ${MODES.confidence}) {
    colour = along(doubt, mix(float(before.g), float(after.g), part) / 65535.0);
  } else if (mode == ${MODES.error}) {
    colour = !known ? unknown : numbers ? along(doubt, 1.0 - float(facts.y) / 65535.0) : facts.y > 0u ? wrong : right;
    if (known && !numbers && facts.y > 0u) shape = 1;
  } else if (numbers) {
    float value = mode == ${MODES.label} ? float(facts.x) : mix(float(before.r), float(after.r), part);
    colour = mode == ${MODES.label} && !known ? unknown : along(scale, value / 65535.0);
  } else if (mode == ${MODES.label} && !known) {
    colour = unknown;
    alpha = 0.5;
  } else {
    group = int(mode == ${MODES.label} ? facts.x : now.r);
    colour = palette[group % ${COLOURS}];
    shape = (group / ${COLOURS}) % 4;
  }
  if (only >= 0 && group != only) alpha = 0.08;
  selected = facts.w;
  float grown = node >= 0 ? 1.7 : selected == 1u ? 1.25 : 1.0;
  halfSize = radius * grown;
  gl_Position = clip(place(id));
  gl_PointSize = 2.0 * halfSize + 4.0;
}`;

const NODE_FRAGMENT = `#version 300 es
precision highp float;
precision highp int;
flat in vec3 colour;
flat in float alpha;
flat in int shape;
flat in float halfSize;
flat in uint selected;
uniform vec3 ground;
uniform vec3 ink;
uniform int node;
out vec4 result;
void main() {
  vec2 p = (gl_PointCoord - 0.5) * (2.0 * halfSize + 4.0);
  float d = length(p) - halfSize;
  if (shape == 1) d = max(abs(p.x), abs(p.y)) - 0.86 * halfSize;
  if (shape == 2) d = 0.75 * (abs(p.x) + abs(p.y) - 1.2 * halfSize);
  if (shape == 3) d = max(abs(p.x) * 0.866 - p.y * 0.5, p.y) - 0.55 * halfSize;
  float inside = clamp(0.5 - d, 0.0, 1.0);
  bool marked = selected == 1u || node >= 0;
  float border = smoothstep(-1.6, -0.6, d) * (marked ? 1.0 : 0.55);
  result = vec4(mix(colour, marked ? ink : ground, border), 1.0) * inside * (marked ? max(alpha, 0.9) : alpha);
}`;
