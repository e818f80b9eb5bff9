// The panels beside the board: value, candidate moves, best line, chart and list of moves.

import { $, capital, html, inkOn, percent, refill, shape } from "./dom.js";

const CANDIDATES = 5;

/** Returns a board's display name, such as Hex 7 × 7 for `hex:7`. */
export function title(board) {
  const [family, ...words] = board.split(":");
  if (family === "mnk") {
    const [rows, columns, run] = words[0].split("x");
    return `${words[1] ? `Connect ${run}` : `${run} in a row`}, ${rows} × ${columns}`;
  }
  if (family === "tsp") return `Tour of ${words[0]} cities`;
  const rest = words.map((word) => (/^\d+$/.test(word) ? `${word} × ${word}` : word.replaceAll("_", " ")));
  return [family.split("_").map(capital).join(" "), ...rest].join(" ");
}

/** Shows the value of player 0, in [-1, 1], as the expected scores of both players. Hidden for a single player. */
export function showValue(value, players) {
  const bar = $("value");
  bar.classList.toggle("unknown", value === null);
  if (value === null || players.length < 2) {
    bar.hidden = players.length < 2;
    bar.title = "";
    bar.setAttribute("aria-label", "Value");
    return;
  }
  bar.hidden = false;
  const share = (1 + Math.max(-1, Math.min(1, value))) / 2;
  bar.style.setProperty("--first", players[0].colour);
  bar.style.setProperty("--second", players[1].colour);
  bar.style.setProperty("--share", `${100 * share}%`);
  bar.firstElementChild.textContent = Math.round(100 * Math.max(share, 1 - share));
  bar.firstElementChild.style.color = inkOn(players[share < 0.5 ? 1 : 0].colour);
  bar.classList.toggle("second-leads", share < 0.5);
  bar.title = `The network expects ${percent(share)} for ${players[0].name}`;
  bar.setAttribute("aria-label", bar.title);
}

/** Shows each player's discs or points; nothing if `counts` is null. */
export function showCounts(counts, players) {
  $("counts").hidden = !counts;
  $("counts").replaceChildren(...(counts ?? []).map((count, player) => {
    const mark = html("i", {});
    mark.style.background = players[player].colour;
    return html("span", {}, mark, html("span", { textContent: `${capital(players[player].name)} ${count}` }));
  }));
}

/**
 * Lists the moves with the largest shares, and the network's move, which need not be among them; empty without an
 * analysis. `play(action)` plays a move.
 */
export function showCandidates(position, analysis, source, play) {
  const rows = !analysis ? [] : position.legal.map((move, number) => ({
    move, share: analysis[source][number], value: source === "policy" ? analysis.values[number] : null,
  }));
  rows.sort((one, other) => other.share - one.share);
  const isPlayed = ({ move }) => source === "policy" && move.action === analysis.action;
  const played = rows.slice(CANDIDATES).find(isPlayed);
  rows.splice(CANDIDATES, Infinity, ...(played ? [played] : []));
  refill($("candidates").tBodies[0], rows.map((row) => {
    const { move, share, value } = row, look = isPlayed(row) ? "link played" : "link";
    const title = isPlayed(row) ? `Play ${move.name}, as the network would` : `Play ${move.name}`;
    const button = html("button", { textContent: move.name, className: look, title });
    button.addEventListener("click", () => play(move.action));
    const bar = html("div", { className: "bar" }, html("span", {}), html("i", { textContent: percent(share) }));
    bar.firstElementChild.style.width = percent(share);
    return html("tr", {}, html("td", {}, button), html("td", {}, bar), html("td", { textContent: say(value) }));
  }));
}

function say(value) {
  if (value === null) return "";
  if (Math.abs(value) > 1.5) return Math.round(value).toLocaleString("en"); // points
  const size = Math.abs(value).toFixed(2);
  return (Number(size) === 0 ? "" : value > 0 ? "+" : "−") + size;
}

export function showLine(line) {
  $("line-panel").replaceChildren(...line.map((move) => {
    const name = html("span", { textContent: move.name });
    name.style.setProperty("--colour", move.colour);
    return name;
  }));
}

/**
 * Draws the value of player 0 by ply, null where unknown, and a line under each marked move. `choose(ply)` shows a
 * position.
 */
export function showChart(values, plies, cursor, players, choose, marks) {
  const width = 320, height = 72, step = width / Math.max(plies, 8);
  const known = values.slice(0, plies + 1).flatMap((value, ply) => (Number.isFinite(value) ? [[ply, value]] : []));
  const single = players.length < 2, most = single ? Math.max(...known.map(([, value]) => value), 1) : 1;
  const y = (value) => (single ? height - 4 - (value / most) * (height - 8) : height / 2 - value * (height / 2 - 4));
  const points = known.map(([ply, value]) => `${(ply * step).toFixed(1)},${y(value).toFixed(1)}`);
  const base = single ? height : height / 2;
  const frame = { viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none" };
  const svg = shape("svg", { ...frame, role: "img", "aria-label": "Value over the game" },
    shape("line", { x1: 0, x2: width, y1: base, y2: base, class: "axis" }),
    shape("line", { x1: cursor * step, x2: cursor * step, y1: 0, y2: height, class: "cursor" }));
  if (points.length) {
    const [first, last] = [known[0][0] * step, known.at(-1)[0] * step];
    const area = `${first},${base} ${points.join(" ")} ${last},${base}`;
    if (single) svg.append(shape("polygon", { points: area, class: "area" }));
    else {
      for (const [name, top] of [["upper", 0], ["lower", height / 2]]) {
        svg.append(shape("clipPath", { id: name }, shape("rect", { x: 0, y: top, width, height: height / 2 })));
        const fill = players[name === "upper" ? 0 : 1].colour;
        svg.append(shape("polygon", { points: area, "clip-path": `url(#${name})`, fill, opacity: 0.35 }));
      }
    }
    svg.append(shape("polyline", { points: points.join(" "), class: "curve" }));
  }
  marks.forEach((mark, ply) => {
    if (mark) svg.append(shape("line", { x1: (ply + 1) * step, x2: (ply + 1) * step, y1: 0, y2: height, class: "mark" }));
  });
  svg.addEventListener("click", (event) => {
    const box = svg.getBoundingClientRect();
    choose(Math.max(0, Math.min(plies, Math.round((event.clientX - box.left) / box.width * width / step))));
  });
  const ends = single ? [Math.round(most).toLocaleString("en"), "0"] : players.map(({ name }) => capital(name));
  const labels = ends.map((text, end) => html("span", { textContent: text, className: end ? "low" : "high" }));
  $("chart").replaceChildren(svg, ...labels, html("span", { textContent: `move ${cursor} of ${plies}`, className: "place" }));
}

/** Lists the moves with their marks. `choose(ply)` shows the position after `ply` moves. */
export function showMoves(steps, cursor, players, choose, marks) {
  const list = $("moves");
  refill(list, steps.map((step, number) => {
    const button = html("button", { textContent: step.name });
    button.style.setProperty("--colour", players[step.player]?.colour);
    const mark = marks[number];
    if (mark) {
      button.append(html("b", { textContent: mark.text, className: "mark" }));
      button.title = `${mark.name}: gives away ${percent(mark.cost)} of the expected score`;
    }
    if (number + 1 === cursor) button.setAttribute("aria-current", "step");
    button.addEventListener("click", () => choose(number + 1));
    return html("li", {}, button);
  }));
  const current = list.querySelector("[aria-current]")?.parentElement;
  list.scrollTop = current ? current.offsetTop - list.offsetTop - list.clientHeight / 2 : 0;
}
