// The review of a game: the value of every position, and the moves that cost most.

import { percent } from "./dom.js";
import { game } from "./state.js";

// Marks of chess, by the least share of the expected score that a move gives away.
const MARKS = [[0.4, "??", "A blunder"], [0.2, "?", "A mistake"], [0.1, "?!", "Dubious"]];

/** Returns the mark of each move, null for a good move or before the review; a mark has `text`, `name`, `cost`. */
export function marks() {
  return game.steps.slice(0, game.moves.length).map((step, number) => {
    const [before, after] = [game.values[number], game.values[number + 1]];
    if (!game.isReviewed || !Number.isFinite(before) || !Number.isFinite(after)) return null;
    const cost = (step.player === 0 ? before - after : after - before) / 2;
    const found = MARKS.find(([least]) => cost >= least);
    return found ? { text: found[1], name: found[2], cost } : null;
  });
}

/** Returns the position before the nearest marked move in a direction, -1 or 1, or null if there is none. */
export function nearestMark(direction) {
  const plies = marks().flatMap((mark, ply) => (mark ? [ply] : []));
  const ahead = plies.filter((ply) => (ply - game.cursor) * direction > 0);
  return (direction > 0 ? ahead[0] : ahead.at(-1)) ?? null;
}

/** Returns what the move after `ply` moves gives away, by its mark, and what was better; empty without a mark. */
export function verdict(mark, ply) {
  if (!mark) return "";
  const better = game.better[ply];
  const advice = better && better.action !== game.moves[ply] ? ` Better: ${better.name}.` : "";
  return `${mark.name}: ${game.steps[ply].name} gives away ${percent(mark.cost)} of the expected score.${advice}`;
}

/** Returns one sentence per player. */
export function summary(players) {
  return players.map(({ name }, player) => {
    const own = marks().filter((mark, ply) => mark && game.steps[ply].player === player);
    const counts = MARKS.map(([, text]) => own.filter((mark) => mark.text === text).length);
    const said = MARKS.flatMap(([, text], index) => (counts[index] ? [`${counts[index]} × ${text}`] : []));
    return `${name.charAt(0).toUpperCase() + name.slice(1)}: ${said.join(", ") || "no mistakes"}.`;
  }).join(" ");
}
