// What the page knows: the game, what a person has chosen, and what is shown. The server keeps nothing of it.

export const game = { board: "", seed: 0, moves: [], steps: [], cursor: 0, values: [] };
export const view = { position: null, analysis: null, attention: null, node: null, block: 0, head: -1 };
export const server = { info: null, table: null }; // what is played there, and the description of this board
export const SHOWN = ["value", "policy", "line", "attention"];
export const settings = {
  sides: ["person", "network"], simulations: null, source: "policy",
  value: true, policy: false, line: false, attention: false,
};

const KEY = "alphagat";

export const keep = () => localStorage.setItem(KEY, JSON.stringify(settings));

/** Takes the settings of the last visit. */
export function recall() {
  try {
    Object.assign(settings, JSON.parse(localStorage.getItem(KEY) ?? "{}"));
  } catch { /* what was kept is of no use */ }
}

/** The game up to the cursor, as the server is asked about it. */
export const request = () => ({ board: game.board, seed: game.seed, moves: game.moves.slice(0, game.cursor) });
export const isPersons = (player) => settings.sides[player] === "person";
export const isAtEnd = () => game.cursor === game.moves.length;
