// Saves and loads games.

import * as api from "./api.js";
import { download } from "./dom.js";
import { game, request, server, settings } from "./state.js";

const FORMAT = "alphagat-game";

const name = (ending) => game.board.replaceAll(":", "-") + ending;

export function save() {
  const moves = game.steps.slice(0, game.moves.length).map((step) => step.name);
  const content = { format: FORMAT, version: 1, board: game.board, seed: game.seed, moves };
  download(name(".json"), JSON.stringify(content), "application/json");
}

/** Reads a file written by `save`. Throws an ApiError if it is invalid. */
export async function read(file) {
  let saved;
  try {
    saved = JSON.parse(await file.text());
  } catch {
    saved = null;
  }
  if (saved?.format !== FORMAT) throw new api.ApiError("This file is not an AlphaGAT game.");
  if (!server.info.boards.includes(saved.board)) throw new api.ApiError(`This server does not offer the board ${saved.board}.`);
  return saved;
}

/** Downloads the game as SGF, or as PGN for chess. */
export async function writeRecord() {
  const network = `AlphaGAT, ${settings.simulations} simulations`;
  const names = settings.sides.map((side) => (side === "person" ? "Person" : network));
  download(name(server.board.record), await api.record(request(), names), "text/plain");
}
