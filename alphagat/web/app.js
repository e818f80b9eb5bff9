// A person's game against the network. The server keeps nothing: every request tells the moves so far.

import * as api from "./api.js";
import { Board } from "./board.js";
import { $, capital, download, html, segments } from "./dom.js";
import { showCandidates, showChart, showLine, showMoves, showValue, title } from "./panels.js";

const PAUSE = 350; // milliseconds that the network takes at least for a move, so that one can follow
const FORMAT = "alphagat-game";
const shown = ["value", "policy", "line", "attention"];

let info, table; // the server's, and the board's description
const game = { board: "", seed: 0, moves: [], steps: [], cursor: 0, values: [] };
const settings = { sides: ["person", "network"], simulations: null, source: "policy", value: true, policy: false, line: false, attention: false };
const view = { position: null, analysis: null, attention: null, node: null, block: 0, head: -1 };
const analyses = new Map(); // by moves and simulations, of this board
let controller = new AbortController();

const board = new Board($("board"), $("choices"), {
  onPlay: (action) => play(action),
  onLook: (node) => { view.node = node; annotate(); },
});

const request = (cursor = game.cursor) => ({ board: game.board, seed: game.seed, moves: game.moves.slice(0, cursor) });
const isPersons = (position) => settings.sides[position.player] === "person";
const isAtEnd = () => game.cursor === game.moves.length;

/** Runs what may fail, and tells people why it did. */
async function attempt(action) {
  try {
    await action();
  } catch (error) {
    if (error.name === "AbortError") return;
    if (!(error instanceof api.ApiError)) throw error;
    tell(error.message);
  }
}

function tell(message) {
  $("toast").textContent = message;
  $("toast").hidden = false;
  clearTimeout(tell.timer);
  tell.timer = setTimeout(() => { $("toast").hidden = true; }, 6000);
}

/** Shows the position at the cursor, asks what the network thinks of it, and lets it move where it is its turn. */
function update(announcement = "") {
  controller.abort();
  controller = new AbortController();
  const { signal } = controller;
  return attempt(async () => {
    const position = await api.position(request(), signal);
    signal.throwIfAborted();
    Object.assign(view, { position, analysis: null, attention: null, node: null });
    game.steps.splice(0, position.moves.length, ...position.moves);
    if (position.over) game.values[game.cursor] = outcome(position);
    showPosition();
    Object.assign(document.body.dataset, { ply: game.cursor, over: position.over, analysed: false });
    $("live").textContent = `${announcement} ${$("status-text").textContent}`.trim();
    if (position.over) return;
    const started = performance.now();
    view.analysis = await analyse(signal);
    signal.throwIfAborted();
    annotate();
    document.body.dataset.analysed = true;
    if (settings.attention && table.attention) {
      view.attention = await api.attention(request(), signal);
      signal.throwIfAborted();
      annotate();
    }
    if (isPersons(position) || !isAtEnd()) return;
    await new Promise((resolve) => setTimeout(resolve, Math.max(0, PAUSE - (performance.now() - started))));
    signal.throwIfAborted();
    play(view.analysis.action);
  });
}

async function analyse(signal) {
  const key = `${game.seed} ${game.moves.slice(0, game.cursor)} ${settings.simulations}`;
  if (!analyses.has(key)) analyses.set(key, await api.analysis(request(), settings.simulations, signal));
  const analysis = analyses.get(key);
  const points = view.position.points ?? 0;
  game.values[game.cursor] = table.players.length < 2 ? points + analysis.value : analysis.player === 0 ? analysis.value : -analysis.value;
  for (const move of analysis.variation) move.colour = table.players[move.player].colour;
  return analysis;
}

/** What a finished game is worth to player 0; the points of a single one. */
function outcome({ points, winner }) {
  return points ?? (winner === null ? 0 : winner === 0 ? 1 : -1);
}

function play(action) {
  const move = view.position.legal.find((each) => each.action === action);
  if (!move) return;
  const mover = table.players[view.position.player];
  game.moves.splice(game.cursor, Infinity, action);
  game.steps.splice(game.cursor);
  game.values.splice(++game.cursor);
  const who = table.players.length < 2 ? "" : `${capital(mover.name)} plays `;
  update(`${who}${move.name}.`);
}

function goTo(cursor) {
  game.cursor = Math.max(0, Math.min(game.moves.length, cursor));
  update();
}

/** Goes back, or forth, to where a person is to move. */
function turn(way) {
  let cursor = game.cursor + way;
  const persons = (ply) => settings.sides[game.steps[ply]?.player ?? 0] === "person";
  if (settings.sides.slice(0, table.players.length).includes("person")) {
    while (cursor > 0 && cursor < game.moves.length && !persons(cursor)) cursor += way;
  }
  goTo(cursor);
}

function status(position) {
  const one = table.players.length < 2;
  if (position.over) {
    if (one) return `Over, with ${position.points.toLocaleString("en")} points`;
    return position.winner === null ? "A draw" : `${capital(table.players[position.winner].name)} wins`;
  }
  if (one) return `${position.points.toLocaleString("en")} points`;
  const { name } = table.players[position.player];
  return isPersons(position) ? `${capital(name)} to move` : isAtEnd() ? `${capital(name)} is thinking` : `${capital(name)} to move`;
}

function showPosition() {
  const { position } = view;
  const player = position.over ? position.winner : position.player;
  const mover = table.players[player ?? 0]?.colour;
  $("status-text").textContent = status(position);
  $("dot").style.background = player === null ? "" : mover;
  $("dot").classList.toggle("busy", !position.over && !isPersons(position) && isAtEnd());
  $("text").textContent = position.text;
  $("move-now").disabled = position.over;
  for (const id of ["first", "back"]) $(id).disabled = game.cursor === 0;
  for (const id of ["forward", "last"]) $(id).disabled = isAtEnd();
  const canPlay = !position.over && (isPersons(position) || !isAtEnd());
  board.show(position, table.family, table.players[position.player].colour, canPlay);
  annotate();
}

/** Shows what is switched on of all that is known. */
function annotate() {
  const { position, analysis, attention } = view;
  if (!position) return;
  const line = settings.line && analysis ? analysis.variation : null;
  const looking = Boolean(settings.attention && table.attention);
  board.annotate({
    policy: settings.policy && analysis ? analysis[settings.source] : null,
    line, looking, node: view.node,
    attention: looking && attention ? { ...attention, weights: chosenWeights(attention.weights) } : null,
  });
  showValue(settings.value ? game.values[game.cursor] ?? null : null, table.players);
  $("value").hidden = !settings.value || table.players.length < 2;
  $("policy-panel").hidden = !settings.policy;
  $("line-panel").hidden = !line?.length;
  $("attention-panel").hidden = !looking;
  if (settings.policy && analysis) showCandidates(position, analysis, settings.source, play);
  if (settings.policy && !analysis) $("candidates").tBodies[0].replaceChildren();
  if (line) showLine(line);
  $("chart").hidden = !settings.value;
  showChart(game.values, game.moves.length, game.cursor, table.players, goTo);
  showMoves(game.steps, game.cursor, table.players, goTo);
}

/** The weights of the edges in the chosen block, of one head or the mean of all. */
function chosenWeights(weights) {
  const heads = weights[view.block];
  if (view.head >= 0) return heads[view.head];
  return heads[0].map((_, edge) => heads.reduce((sum, head) => sum + head[edge], 0) / heads.length);
}

async function open(name, saved = {}) {
  await attempt(async () => {
    const opened = await api.board(name);
    const loaded = { board: name, seed: saved.seed ?? crypto.getRandomValues(new Uint32Array(1))[0], moves: saved.moves ?? [] };
    const { moves } = await api.position(loaded);
    table = opened;
    analyses.clear();
    Object.assign(game, { ...loaded, moves: moves.map((step) => step.action), steps: moves, cursor: moves.length, values: [] });
    Object.assign(view, { block: table.attention ? table.attention[0] - 1 : 0, head: -1 });
    $("boards").value = name;
    showOptions();
    await update();
  });
}

function showOptions() {
  const { players, attention, record } = table;
  const sides = players.length < 2
    ? [[["person"], "Yourself"], [["network"], "Network"]]
    : [[["person", "network"], capital(players[0].name)], [["network", "person"], capital(players[1].name)],
      [["person", "person"], "Both"], [["network", "network"], "Neither"]];
  if (!sides.some(([value]) => String(value) === String(settings.sides))) settings.sides = sides[0][0];
  segments($("sides"), sides.map(([value, label]) => [String(value), label]), String(settings.sides), (value) => {
    settings.sides = value.split(",");
    keep();
    update();
  });
  segments($("strengths"), info.strengths.map((each) => [each, String(each), each ? "" : "the network alone"]), settings.simulations, (value) => {
    settings.simulations = value;
    keep();
    update();
  });
  segments($("source"), [["policy", "With search"], ["prior", "Network alone"]], settings.source, (value) => {
    settings.source = value;
    keep();
    annotate();
  });
  const [blocks, heads] = attention ?? [0, 0];
  const numbers = (count) => Array.from({ length: count }, (_, number) => [number, String(number + 1)]);
  segments($("blocks"), numbers(blocks), view.block, (value) => { view.block = value; annotate(); });
  segments($("heads"), [[-1, "All"], ...numbers(heads)], view.head, (value) => { view.head = value; annotate(); });
  $("show-attention").disabled = !attention;
  $("record").hidden = !record;
  $("record").textContent = (record ?? "").slice(1).toUpperCase();
  for (const name of shown) $(`show-${name}`).setAttribute("aria-pressed", settings[name]);
}

function toggle(name) {
  if ($(`show-${name}`).disabled) return;
  settings[name] = !settings[name];
  $(`show-${name}`).setAttribute("aria-pressed", settings[name]);
  keep();
  if (name === "attention" && settings.attention) update();
  else annotate();
}

const keep = () => localStorage.setItem("alphagat", JSON.stringify(settings));
const newGame = () => open(game.board);

function save() {
  const moves = game.steps.slice(0, game.moves.length).map((step) => step.name);
  const content = { format: FORMAT, version: 1, board: game.board, seed: game.seed, moves };
  download(`${game.board.replaceAll(":", "-")}.json`, JSON.stringify(content), "application/json");
}

async function load(file) {
  let saved;
  try {
    saved = JSON.parse(await file.text());
  } catch {
    saved = {};
  }
  if (saved.format !== FORMAT) return tell("This file is no game of AlphaGAT.");
  if (!info.boards.includes(saved.board)) return tell(`The board ${saved.board} is not played here.`);
  settings.sides = ["person", "person"]; // so that nothing moves before one has looked
  await open(saved.board, saved);
}

function writeRecord() {
  const names = settings.sides.map((side) => (side === "person" ? "Person" : `AlphaGAT, ${settings.simulations} simulations`));
  attempt(async () => download(`${game.board.replaceAll(":", "-")}${table.record}`, await api.record(request(), names), "text/plain"));
}

const KEYS = {
  u: () => game.cursor && turn(-1), r: () => isAtEnd() || turn(1), n: newGame, m: () => moveNow(),
  v: () => toggle("value"), p: () => toggle("policy"), l: () => toggle("line"), a: () => toggle("attention"),
  "?": () => $("help").showModal(),
};

function moveNow() {
  if (view.analysis) play(view.analysis.action);
}

function listen() {
  const clicks = {
    new: newGame, first: () => goTo(0), last: () => goTo(Infinity), back: KEYS.u, forward: KEYS.r, "move-now": moveNow,
    save, load: () => $("file").click(), record: writeRecord, "help-open": KEYS["?"],
  };
  for (const [id, action] of Object.entries(clicks)) $(id).addEventListener("click", action);
  for (const name of shown) $(`show-${name}`).addEventListener("click", () => toggle(name));
  $("boards").addEventListener("change", (event) => open(event.target.value));
  $("file").addEventListener("change", (event) => {
    if (event.target.files[0]) load(event.target.files[0]);
    event.target.value = "";
  });
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || $("help").open || event.target.matches("select, input:not([type=radio])")) return;
    KEYS[event.key]?.();
  });
}

async function start() {
  try {
    Object.assign(settings, JSON.parse(localStorage.getItem("alphagat") ?? "{}"));
  } catch { /* what was kept is of no use */ }
  await attempt(async () => {
    info = await api.info();
    if (!info.strengths.includes(settings.simulations)) settings.simulations = info.simulations;
    $("boards").replaceChildren(...info.boards.map((name) => html("option", { value: name, textContent: title(name) })));
    listen();
    await open(info.default);
  });
}

start();
