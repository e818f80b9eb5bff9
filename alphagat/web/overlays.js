// Overlays for a board: policy, variation and attention. All functions return SVG elements.

import { inkOn, shape } from "./dom.js";

const MOST_ARROWS = 8, MOST_EDGES = 90, LEAST_SHARE = 0.005;

const LABEL = 28; // height in pixels of the label below a column

const radius = ([, , width, height]) => Math.min(width, height) / 2;

/**
 * Draws the share of each legal move as the area of a disc, or as an arrow for moves between two places. Omits the
 * number at places covered by `line`.
 */
export function drawHeat({ legal, nodes }, policy, held, line) {
  const most = Math.max(...policy);
  const visible = legal.map((move, number) => ({ ...move, share: policy[number] }))
    .filter(({ share, place, from }) => place && share >= LEAST_SHARE && (held === null || from === held))
    .sort((one, other) => one.share - other.share);
  const covered = new Set((line ?? []).map(({ place }) => String(place)));
  const arrows = visible.filter(({ from, to }) => from !== to).slice(-MOST_ARROWS);
  const discs = visible.filter(({ from, to }) => from === to);
  return [
    ...arrows.map((move) => drawArrow(nodes[move.from], move.place, move.share, most)),
    ...discs.map((move) => drawShare(move.place, move.share, most, !covered.has(String(move.place)))),
  ];
}

function drawShare(place, share, most, numbered) {
  const [x, y] = place, size = radius(place) * 0.84 * Math.sqrt(Math.max(share / most, 0.06));
  const parts = [shape("circle", { cx: x, cy: y, r: size, opacity: 0.3 + 0.6 * Math.sqrt(share / most) })];
  if (numbered && size > 8.5) parts.push(label(x, y, Math.round(100 * share), Math.min(12, size * 0.9)));
  return shape("g", { class: "share" }, ...parts);
}

function drawArrow(from, to, share, most) {
  const [x, y] = from, [endX, endY] = to;
  const length = Math.hypot(endX - x, endY - y) || 1, [right, down] = [(endX - x) / length, (endY - y) / length];
  const thickness = 2.5 + 6 * share, head = 5 + 1.3 * thickness, stop = length - head;
  const point = (along, aside) => `${x + right * along - down * aside},${y + down * along + right * aside}`;
  const points = [
    point(6, -thickness / 2), point(stop, -thickness / 2), point(stop, -head * 0.62), point(length + 1, 0),
    point(stop, head * 0.62), point(stop, thickness / 2), point(6, thickness / 2),
  ];
  const opacity = 0.25 + 0.65 * Math.sqrt(share / most);
  return shape("polygon", { class: "share", points: points.join(" "), opacity });
}

/** Draws the numbered moves of a variation in the colours of their players. */
export function drawLine(line) {
  const taken = new Set();
  return line.flatMap((move, number) => {
    if (!move.place || taken.has(String(move.place))) return [];
    taken.add(String(move.place));
    const [x, y] = move.place, size = Math.min(radius(move.place) * 0.56, 13);
    const stone = shape("circle", { cx: x, cy: y, r: size, fill: move.colour });
    const parts = [stone, label(x, y, number + 1, 1.1 * size, inkOn(move.colour))];
    if (move.from) {
      const [fromX, fromY] = move.from, length = Math.hypot(x - fromX, y - fromY) || 1;
      const [endX, endY] = [x - (x - fromX) / length * size, y - (y - fromY) / length * size];
      const ends = { x1: fromX, y1: fromY, x2: endX, y2: endY };
      parts.unshift(shape("line", { ...ends, stroke: move.colour }));
    }
    return [shape("g", { class: "step", opacity: Math.max(0.35, 1 - 0.09 * number) }, ...parts)];
  }).reverse();
}

/**
 * Draws attention as edges and shaded nodes: the attention of `node`, or of all nodes if `node` is null. `senders`,
 * `receivers` and `weights` are per edge; receivers attend to senders. `kinds` are per node. A column of the board is
 * drawn at its label below the board.
 */
export function drawAttention(nodes, { senders, receivers, kinds, weights }, node) {
  const isColumn = (each) => kinds[each] === "column";
  const middle = (each) => {
    const [x, y, , height] = nodes[each];
    return [x, isColumn(each) ? y + (height - LABEL) / 2 : y];
  };
  const total = new Array(nodes.length).fill(0), edges = [];
  weights.forEach((weight, edge) => {
    if (node !== null && receivers[edge] !== node) return;
    const isLoop = senders[edge] === receivers[edge];
    if (!isLoop || node !== null) total[senders[edge]] += weight;
    if (!isLoop && nodes[senders[edge]] && nodes[receivers[edge]]) edges.push({ edge, weight });
  });
  const most = Math.max(...total, 1e-9);
  edges.sort((one, other) => other.weight - one.weight).splice(MOST_EDGES);
  const strongest = edges[0]?.weight || 1;
  const shades = total.flatMap((weight, each) => {
    if (!nodes[each] || weight < 0.02 * most) return [];
    const [x, y] = middle(each), [, , width, height] = nodes[each];
    const side = Math.min(width, height, isColumn(each) ? LABEL : 40);
    const square = { x: x - side / 2, y: y - side / 2, width: side, height: side, rx: side / 4 };
    return [shape("rect", { class: "shade", ...square, opacity: 0.5 * weight / most })];
  });
  const lines = edges.reverse().map(({ edge, weight }) => {
    const [x1, y1] = middle(receivers[edge]), [x2, y2] = middle(senders[edge]);
    const strength = weight / strongest, bend = 0.12;
    const [middleX, middleY] = [(x1 + x2) / 2 - (y2 - y1) * bend, (y1 + y2) / 2 + (x2 - x1) * bend];
    const look = { opacity: 0.08 + 0.8 * strength ** 1.5, "stroke-width": 0.6 + 3 * strength };
    return shape("path", { d: `M${x1} ${y1}Q${middleX} ${middleY} ${x2} ${y2}`, ...look });
  });
  const eye = nodes[node] && middle(node);
  const focus = eye ? [shape("circle", { class: "eye", cx: eye[0], cy: eye[1], r: 6 })] : [];
  return [...shades, ...lines, ...focus];
}

function label(x, y, text, size, fill = "#ffffff") {
  return shape("text", { x, y, dy: ".36em", "font-size": size, fill }, String(text));
}
