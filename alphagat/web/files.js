// Saves and loads games.

import * as api from "./api.js";
import { download } from "./dom.js";
import { engineOf, game, request, server, settings } from "./state.js";

const FORMAT = "alphagat-game";

const name = (ending) => game.board.replaceAll(":", "-") + ending;

export function save() {
  const moves = game.steps.slice(0, game.moves.length).map((step) => step.name);
  const content = { format: FORMAT, version: 1, board: game.board, seed: game.seed, moves };
  if (game.resigned !== null) content.resigned = game.resigned;
  download(name(".json"), JSON.stringify(content), "application/json");
}

/** Reads a file written by `save`, or the first game of an SGF or PGN file. Throws an ApiError if it is invalid. */
export async function read(file) {
  const text = await file.text();
  const saved = text.trimStart().startsWith("{") ? parse(text) : (await api.games(text, game.board)).games[0];
  if (!saved) throw new api.ApiError("This file has no game.");
  if (!server.info.boards.includes(saved.board)) throw new api.ApiError(`This server does not offer the board ${saved.board}.`);
  return saved;
}

function parse(text) {
  try {
    const saved = JSON.parse(text);
    if (saved.format === FORMAT) return saved;
  } catch { /* not JSON */ }
  throw new api.ApiError("This file is not an AlphaGAT game.");
}

/** Downloads the whole game as SGF, or as PGN for chess. */
export async function writeRecord() {
  const network = (player) => `AlphaGAT, ${engineOf(player).simulations} simulations`;
  const names = settings.sides.map((side, player) => (side === "person" ? "Person" : network(player)));
  download(name(server.board.record), await api.record(request(game.moves.length), names, game.resigned), "text/plain");
}
