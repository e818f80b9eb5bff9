// The state of the page: game, view and settings. The server is stateless.

export const game = {
  board: "", seed: 0, moves: [], steps: [], cursor: 0, values: [],
  isReviewed: false, better: [], // the best move by ply, after a review
  resigned: null, // the player who gave up at the end of the moves
  isSwapped: false, // whether the sides were swapped after the first move
  source: null, // the names, outcome and forfeit in the file of the game, as long as it is the game of the file
  swapsBack: false, // whether the next game has the sides from before the swap: nobody has chosen others since
};
export const view = { position: null, analysis: null, attention: null, node: null, block: 0, head: -1, file: null };
export const server = { info: null, board: null }; // the boards on offer, and the description of the current one
export const SHOWN = ["value", "policy", "line", "attention"];
export const settings = {
  sides: ["person", "network"], swap: false, source: "policy",
  engines: [0, 1].map(() => ({ network: "", simulations: null, isBeginner: false })),
  value: true, policy: false, line: false, attention: false,
};

const KEY = "alphagat";

const isEngine = (engine) => typeof engine?.network === "string" && typeof engine.isBeginner === "boolean";
const CHECKS = { // of the settings that are neither true nor false
  sides: (sides) => Array.isArray(sides) && sides.every((side) => ["person", "network"].includes(side)),
  engines: (engines) => Array.isArray(engines) && engines.length === 2 && engines.every(isEngine),
  source: (source) => ["policy", "prior"].includes(source),
};

/** Returns the sides, and the levels of two networks, the other way round. */
export function exchanged() {
  const { sides, engines } = settings;
  return { sides: [...sides].reverse(), engines: hasTwoEngines() ? [...engines].reverse() : engines };
}

/** Stores the settings for the next visit, with the sides from before a swap. */
export function keep() {
  try {
    localStorage.setItem(KEY, JSON.stringify({ ...settings, ...(game.swapsBack ? exchanged() : {}) }));
  } catch { /* the browser blocks site data: settings last until the page is closed */ }
}

/** Restores the settings of the last visit; invalid ones are ignored. */
export function recall() {
  try {
    const saved = JSON.parse(localStorage.getItem(KEY)) ?? {};
    const isValid = (name) => (CHECKS[name] ?? ((value) => typeof value === "boolean"))(saved[name]);
    for (const name of Object.keys(settings)) if (isValid(name)) settings[name] = saved[name];
  } catch { /* not JSON, or blocked */ }
}

/** Returns the address of the game at the cursor, as a fragment. */
export function address() {
  const sides = settings.sides.join(".");
  const fields = { board: game.board, seed: game.seed, moves: game.moves.join("."), ply: game.cursor, sides };
  if (game.resigned !== null) fields.resigned = game.resigned;
  if (game.isSwapped) fields.swapped = Number(game.swapsBack);
  return `#${new URLSearchParams(fields)}`;
}

/** Returns the game in the address of the page, in the form of a saved game; null if there is none. */
export function addressed() {
  const fields = new URLSearchParams(location.hash.slice(1));
  if (!fields.get("board")) return null;
  const moves = (fields.get("moves") ?? "").split(".").filter(Boolean).map(Number);
  const given = Number(fields.get("ply") ?? NaN), ply = Number.isInteger(given) ? given : moves.length;
  const resigned = fields.has("resigned") ? Number(fields.get("resigned")) : null;
  const isSwapped = fields.has("swapped"), swapsBack = fields.get("swapped") === "1";
  const sides = fields.get("sides")?.split(".").map((side) => (side === "network" ? side : "person"));
  const seed = Number(fields.get("seed") ?? 0);
  return { board: fields.get("board"), seed, moves, ply, resigned, isSwapped, swapsBack, sides };
}

/** Returns the player who resigned in the position after `ply` moves, or null. */
export const resignedAt = (ply) => (ply === game.moves.length ? game.resigned : null);

/** Returns the game up to a ply, by default the cursor, as a request. */
export const request = (ply = game.cursor) => ({ board: game.board, seed: game.seed, moves: game.moves.slice(0, ply) });
export const isPersons = (player) => settings.sides[player] === "person";
export const isAtEnd = () => game.cursor === game.moves.length;

/** Returns whether the page offers the swap rule: in Hex, unless the board has a swap among its moves. */
export const offersSwap = () => server.board.family === "hex" && !game.board.endsWith(":swap");

/** Returns whether two networks play each other, each with a level of its own. */
export const hasTwoEngines = () => server.board.players.length === 2 && !settings.sides.includes("person");

/** Returns the level and the network that analyse the positions of a player. */
export const engineOf = (player) => settings.engines[hasTwoEngines() ? player : 0];

/** Returns the network of an engine; the board's first if the engine's own does not play this board. */
export const networkOf = (engine) =>
  server.board.networks.find(({ player }) => player === engine.network) ?? server.board.networks[0];

/** Returns the attention of the network that analyses the position on display; null without any. */
export const shownAttention = () => networkOf(engineOf(view.position?.player ?? 0)).attention;
