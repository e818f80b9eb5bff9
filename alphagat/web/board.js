// The board: the server's drawing, the overlays on top of it, and the places that a person can click.

import { html, percent, shape } from "./dom.js";
import { drawAttention, drawHeat, drawLine } from "./overlays.js";

// Directions of arrow keys, swipes and the moves with these names.
const WAYS = { left: [-1, 0], right: [1, 0], up: [0, -1], down: [0, 1] };
const LAYERS = ["hits", "arrows", "ghost", "marks", "attention", "heat", "line"]; // bottom to top
const SWIPE = 30; // pixels
const MOST_NAMED = 6; // moves per place in the label for screen readers

export class Board {
  /** Calls `onPlay(action)` when a person chooses a move, and `onLook(node or null)` when they point at a node. */
  constructor(root, choices, { onPlay, onLook }) {
    Object.assign(this, { root, choices, onPlay, onLook });
    this.held = null; // the node of the selected piece
    this.looking = false; // whether attention is on
    this.looked = null; // the node whose attention is shown
    this.swipe = null; // where the pointer went down
    document.addEventListener("keydown", (event) => {
      if (this.position && (event.target === document.body || root.contains(event.target))) this.#onKey(event);
    });
    root.addEventListener("pointerdown", (event) => { this.swipe = [event.clientX, event.clientY]; });
    root.addEventListener("pointerup", (event) => this.#onSwipe(event));
    for (const end of ["pointerup", "pointercancel"]) document.addEventListener(end, () => { this.swipe = null; });
  }

  /** Draws a position; `canPlay` is true on a person's turn. */
  show(position, family, mover, canPlay) {
    const hadFocus = this.root.contains(document.activeElement) || this.choices.contains(document.activeElement);
    Object.assign(this, { position, canPlay, held: null, looked: null });
    const drawing = document.importNode(
      new DOMParser().parseFromString(position.svg, "image/svg+xml").documentElement, true);
    drawing.setAttribute("aria-hidden", "true");
    const view = this.#viewBox(drawing.viewBox.baseVal);
    drawing.setAttribute("viewBox", view);
    drawing.removeAttribute("width");
    drawing.removeAttribute("height");
    drawing.classList.add("drawing");
    this.layers = Object.fromEntries(LAYERS.map((name) => [name, shape("g", { class: name })]));
    const overlay = shape("svg", { viewBox: view, class: "overlay" }, ...Object.values(this.layers));
    this.root.dataset.family = family;
    this.root.style.setProperty("--mover", mover);
    this.root.style.setProperty("--ratio", view.split(" ")[2] / view.split(" ")[3]);
    this.root.replaceChildren(drawing, overlay);
    this.#mark(position.last);
    this.#makeHits(hadFocus);
  }

  /** Shows the policy (one share per legal move), the line and the attention; null hides each. */
  annotate({ policy, line, attention, looking, node }) {
    const { position, layers } = this;
    Object.assign(this, { policy, line });
    this.#drawHeat();
    layers.line.replaceChildren(...(line ? drawLine(line) : []));
    layers.attention.replaceChildren(...(attention ? drawAttention(position.nodes, attention, node) : []));
    if (looking !== this.looking) {
      this.looking = looking;
      this.root.classList.toggle("looking", looking);
      this.#makeHits(false);
    }
    this.#label();
  }

  #viewBox({ x, y, width, height }) {
    let [left, top, right, bottom] = [x, y, x + width, y + height];
    for (const place of this.position.nodes) {
      if (!place) continue;
      const [middleX, middleY, w, h] = place;
      left = Math.min(left, middleX - w / 2);
      right = Math.max(right, middleX + w / 2);
      top = Math.min(top, middleY - h / 2);
      bottom = Math.max(bottom, middleY + h / 2);
    }
    return [left, top, right - left, bottom - top].join(" ");
  }

  #mark(last) {
    if (!last?.place) return;
    const [x, y] = last.place;
    this.layers.marks.append(shape("circle", { class: "last", cx: x, cy: y, r: 4.5 }));
    if (last.from) this.layers.marks.append(frame(last.from, "left-from"));
  }

  /** Returns the legal moves that start at a node or, with a piece selected, lead there from the piece. */
  #movesAt(node) {
    const { legal } = this.position;
    if (this.held !== null) return legal.filter((move) => move.from === this.held && move.to === node);
    return legal.filter((move) => move.from === node && move.place);
  }

  #makeHits(takeFocus) {
    const { nodes, legal } = this.position;
    const canPlayAt = (node) => this.canPlay && (node === this.held || this.#movesAt(node).length > 0);
    const active = nodes.map((_, node) => node).filter((node) => nodes[node] && (this.looking || canPlayAt(node)));
    const area = (node) => nodes[node][2] * nodes[node][3];
    active.sort((one, other) => area(other) - area(one) || one - other); // smaller ones on top
    this.hits = active.map((node) => this.#makeHit(node));
    this.layers.hits.replaceChildren(...this.hits);
    const arrows = this.hits.filter((hit) => hit.classList.contains("arrow"));
    const chevrons = arrows.map(({ dataset }) => chevron(nodes[dataset.node], WAYS[dataset.name]));
    this.layers.arrows.replaceChildren(...chevrons);
    const first = this.hits.find((hit) => Number(hit.dataset.node) === this.lastNode) || this.hits[0];
    first?.setAttribute("tabindex", "0");
    if (takeFocus) (first || this.root).focus({ preventScroll: true });
    const unplaced = this.canPlay ? legal.filter((move) => !move.place || !nodes[move.from]) : [];
    this.#offer(unplaced);
    this.#label();
  }

  #makeHit(node) {
    const hit = frame(this.position.nodes[node], "hit");
    Object.assign(hit.dataset, { node });
    for (const [name, value] of [["role", "button"], ["tabindex", "-1"]]) hit.setAttribute(name, value);
    if (node === this.held) hit.classList.add("held");
    const [move] = this.position.legal.filter((each) => each.to === node && each.from === node);
    hit.dataset.name = move?.name ?? "";
    if (!this.looking && (move?.name ?? "") in WAYS) hit.classList.add("arrow");
    hit.addEventListener("click", () => this.#choose(node));
    hit.addEventListener("focus", () => {
      this.lastNode = node;
      if (hit.matches(":focus-visible")) this.#look(node); // by keyboard
    });
    hit.addEventListener("pointerenter", (event) => {
      if (event.pointerType !== "mouse") return;
      this.#look(node);
      this.#ghost(move);
    });
    hit.addEventListener("pointerleave", (event) => {
      this.#ghost(null);
      if (event.pointerType === "mouse") this.#look(null);
    });
    return hit;
  }

  /** Previews a stone at the place of a move. */
  #ghost(move) {
    const isShown = move && move.place && this.canPlay && !WAYS[move.name];
    const [x, y, width, height] = isShown ? move.place : [];
    const stone = isShown ? [shape("circle", { cx: x, cy: y, r: 0.36 * Math.min(width, height) })] : [];
    this.layers.ghost.replaceChildren(...stone);
  }

  #label() {
    const { legal } = this.position;
    const share = (move) => (this.policy ? `, ${percent(this.policy[legal.indexOf(move)])}` : "");
    for (const hit of this.hits) {
      const node = Number(hit.dataset.node), names = this.#movesAt(node).map((move) => move.name + share(move));
      let label = names.slice(0, MOST_NAMED).join("; ") + (names.length > MOST_NAMED ? " and more" : "");
      if (node === this.held) label = "Put down";
      if (this.looking && !(this.canPlay && label)) label = `Look from ${hit.dataset.name || `node ${node + 1}`}`;
      hit.setAttribute("aria-label", label);
    }
  }

  /** Shows the attention of a node, if attention is on. */
  #look(node) {
    this.looked = node;
    if (this.looking) this.onLook(node);
  }

  /** Plays or selects what is at a node. With attention on, the first tap on a node shows its attention. */
  #choose(node) {
    if (this.looking && this.looked !== node) return this.#look(node);
    if (!this.canPlay) return;
    if (node === this.held) return this.#hold(null);
    const moves = this.#movesAt(node);
    if (this.held === null && moves.some((move) => move.to !== node)) return this.#hold(node);
    if (moves.length === 1) return this.onPlay(moves[0].action);
    if (!moves.length) return;
    this.#offer(moves);
    this.choices.querySelector("button")?.focus();
  }

  #hold(node) {
    this.held = node;
    this.#makeHits(true);
    this.#drawHeat();
  }

  #drawHeat() {
    const { position, policy, held, line } = this;
    this.layers.heat.replaceChildren(...(policy ? drawHeat(position, policy, held, line) : []));
  }

  /** Shows moves without a unique place as buttons. */
  #offer(moves) {
    this.choices.hidden = !moves.length;
    this.choices.replaceChildren(...moves.map((move) => {
      const button = html("button", { textContent: move.name });
      button.addEventListener("click", () => this.onPlay(move.action));
      return button;
    }));
  }

  #onKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || this.root.closest("[inert]")) return;
    const arrow = event.key.startsWith("Arrow") ? event.key.slice(5).toLowerCase() : "", way = WAYS[arrow];
    const from = this.hits.find((hit) => hit === document.activeElement);
    if (way && this.hits.length) { // else the key scrolls
      event.preventDefault();
      this.#go(way, from, arrow);
    } else if (from && (event.key === "Enter" || event.key === " ")) {
      event.preventDefault();
      this.#choose(Number(from.dataset.node));
    } else if (event.key === "Escape" && this.held !== null) {
      this.lastNode = this.held;
      this.#hold(null);
    }
  }

  /** Plays the move named after the arrow key, or moves the focus to the nearest place in its direction. */
  #go([right, down], from, arrow) {
    const named = this.canPlay && !this.looking && this.position.legal.find((move) => move.name === arrow);
    if (named) return this.onPlay(named.action);
    if (!from) return this.hits[0].focus();
    const [x, y] = this.position.nodes[from.dataset.node];
    let best = null, nearest = Infinity;
    for (const hit of this.hits) {
      const [otherX, otherY] = this.position.nodes[hit.dataset.node];
      const ahead = (otherX - x) * right + (otherY - y) * down;
      const aside = Math.abs((otherX - x) * down) + Math.abs((otherY - y) * right);
      if (ahead > 1 && aside <= 2 * ahead && ahead + 2 * aside < nearest) [best, nearest] = [hit, ahead + 2 * aside];
    }
    best?.focus();
  }

  #onSwipe(event) {
    if (!this.swipe) return; // it began outside the board
    const [x, y] = this.swipe;
    const [right, down] = [event.clientX - x, event.clientY - y];
    if (!this.canPlay || Math.max(Math.abs(right), Math.abs(down)) < SWIPE) return;
    const way = Math.abs(right) > Math.abs(down) ? (right > 0 ? "right" : "left") : (down > 0 ? "down" : "up");
    const move = this.position.legal.find((each) => each.name === way);
    if (move) this.onPlay(move.action);
  }
}

function frame([x, y, width, height], name) {
  const corner = { x: x - width / 2, y: y - height / 2, rx: Math.min(width, height) / 4 };
  return shape("rect", { class: name, ...corner, width, height });
}

function chevron([x, y], [right, down]) {
  const corner = ([ahead, aside]) => `${x + right * ahead - down * aside},${y + down * ahead + right * aside}`;
  return shape("polyline", { class: "chevron", points: [[-4, -8], [4, 0], [-4, 8]].map(corner).join(" ") });
}
