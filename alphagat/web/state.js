// The state of the page: game, view and settings. The server is stateless.

export const game = { board: "", seed: 0, moves: [], steps: [], cursor: 0, values: [], isReviewed: false };
export const view = { position: null, analysis: null, attention: null, node: null, block: 0, head: -1 };
export const server = { info: null, board: null }; // the boards on offer, and the description of the current one
export const SHOWN = ["value", "policy", "line", "attention"];
export const settings = {
  sides: ["person", "network"], simulations: null, beginner: false, source: "policy",
  value: true, policy: false, line: false, attention: false,
};

const KEY = "alphagat";

export const keep = () => localStorage.setItem(KEY, JSON.stringify(settings));

/** Restores the settings of the last visit. */
export function recall() {
  try {
    Object.assign(settings, JSON.parse(localStorage.getItem(KEY) ?? "{}"));
  } catch { /* invalid settings are ignored */ }
}

/** Returns the address of the game at the cursor, as a fragment. */
export function address() {
  const fields = { board: game.board, seed: game.seed, moves: game.moves.join("."), ply: game.cursor };
  return `#${new URLSearchParams(fields)}`;
}

/** Returns the game in the address of the page, in the form of a saved game; null if there is none. */
export function addressed() {
  const fields = new URLSearchParams(location.hash.slice(1));
  if (!fields.get("board")) return null;
  const moves = (fields.get("moves") ?? "").split(".").filter(Boolean).map(Number);
  const ply = fields.has("ply") ? Number(fields.get("ply")) : moves.length;
  return { board: fields.get("board"), seed: Number(fields.get("seed") ?? 0), moves, ply };
}

/** Returns the game up to a ply, by default the cursor, as a request. */
export const request = (ply = game.cursor) => ({ board: game.board, seed: game.seed, moves: game.moves.slice(0, ply) });
export const isPersons = (player) => settings.sides[player] === "person";
export const isAtEnd = () => game.cursor === game.moves.length;
