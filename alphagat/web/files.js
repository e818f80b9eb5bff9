// Saves and loads games.

import * as api from "./api.js";
import { levelName } from "./controls.js";
import { $, download, html } from "./dom.js";
import { engineOf, game, networkOf, request, server, settings } from "./state.js";

const FORMAT = "alphagat-game";
const MAX_NAME = 40; // characters of a player's name, or of the reason of a loss, that the server takes

const name = (ending) => game.board.replaceAll(":", "-") + ending;

export function save() {
  const moves = game.steps.slice(0, game.moves.length).map((step) => step.name);
  const content = { format: FORMAT, version: 1, board: game.board, seed: game.seed, moves };
  if (game.resigned !== null) content.resigned = game.resigned;
  if (game.isSwapped) content.isSwapped = true;
  download(name(".json"), JSON.stringify(content), "application/json");
}

/** Reads a file written by `save`, or the first game of an SGF or PGN file. Throws an ApiError if it is invalid. */
export async function read(file) {
  // The server would close the connection, without an answer that the browser reads.
  if (file.size > server.info.max_file) throw new api.ApiError("This file is too large; open one with fewer games.");
  const text = await file.text();
  return text.trimStart().startsWith("{") ? { ...parse(text), file: null, source: null } : pick({ text, board: game.board }, 0);
}

/** Returns game `number` of an SGF or PGN file, with the `file` itself, from which another game can be picked. */
export async function pick({ text, board }, number) {
  const { games } = await api.games(text, board, number);
  if (!games.length) throw new api.ApiError("This file contains no games.");
  const { names, outcome, forfeit } = games[number];
  const resigned = forfeit === "resigned" && outcome ? Number(outcome > 0) : null;
  const file = { text, board, number, names: games.map((each) => each.names) };
  return { ...games[number], source: { names, outcome, forfeit }, resigned, file };
}

/** Shows the menu of the games of the open file, if it has several. */
export function showFile(file) {
  const menu = $("games");
  menu.hidden = !(file?.names.length > 1);
  if (menu.hidden) return;
  menu.replaceChildren(...file.names.map((names, number) => {
    const players = names.some(Boolean) ? `: ${names.map((each) => each || "?").join(" – ")}` : "";
    return html("option", { value: number, textContent: `Game ${number + 1}${players}` });
  }));
  menu.value = file.number;
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
  const names = settings.sides.map((side, player) => (side === "person" ? "Person" : engineName(engineOf(player))));
  const resigned = game.resigned === null ? {} : { outcome: game.resigned ? 1 : -1, forfeit: "resigned" };
  const { outcome = null, forfeit = "", ...written } = { names, ...resigned, ...game.source };
  const text = await api.record(request(game.moves.length), written.names.map(cut), outcome, cut(forfeit));
  download(name(server.board.record), text, "text/plain");
}

/** Returns the part of a text that the server takes. */
const cut = (text) => [...text].slice(0, MAX_NAME).join("");

/** Returns the network, if the board has several, and the level; of a long name of a network only the end. */
function engineName(engine) {
  const { player } = networkOf(engine);
  const network = server.board.networks.length < 2 || player === "shipped" ? "AlphaGAT" : player;
  const level = levelName(engine), simulations = `${engine.simulations} simulations`;
  const end = `, ${level === String(engine.simulations) ? simulations : `${level} (${simulations})`}`;
  const characters = [...network], most = MAX_NAME - end.length;
  return (characters.length > most ? `…${characters.slice(1 - most).join("")}` : network) + end;
}
