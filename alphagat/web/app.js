// The game against the network: the displayed position, the player to move, and the analysis.

import * as api from "./api.js";
import { Board } from "./board.js";
import { drawn } from "./choice.js";
import { listen, showAttentionControls, showControls } from "./controls.js";
import { $, capital, html } from "./dom.js";
import { pick, read, save, showFile, writeRecord } from "./files.js";
import { showCandidates, showChart, showCounts, showLine, showMoves, showValue, title } from "./panels.js";
import { prepare } from "./preparation.js";
import { marks, nearestMark, summary, verdict } from "./review.js";
import {
  address, addressed, engineOf, exchanged, game, isAtEnd, isPersons, keep, networkOf, offersSwap, recall, request,
  resignedAt, server, settings, shownAttention, view,
} from "./state.js";
import { firstValue, meanOfHeads, outcome, valueOf } from "./values.js";

const PAUSE_MS = 350; // minimum time per move of the network, so that people can follow
const TOAST_MS = 6000;
const CARELESSNESS = 0.5; // of a beginner: the share of its moves that it plays at random
const REVIEW_SIMULATIONS = 64; // per position of a review, at least
const CURSOR_BUTTONS = ["first", "back", "forward", "last"];

const analyses = new Map(); // of the current board, by seed, moves and simulations
let controller = new AbortController(); // of the requests for the displayed position
let opening = new AbortController(); // of the requests for the board that opens

const board = new Board($("board"), $("choices"), {
  onPlay: (action) => play(action),
  onLook: (node) => { view.node = node; annotate(); },
});

/** Runs an action, and shows the message of an ApiError. */
async function attempt(action) {
  try {
    await action();
  } catch (error) {
    if (error.name === "AbortError") return;
    if (!(error instanceof api.ApiError)) throw error;
    notify(error.message);
  }
}

function notify(message) {
  $("toast").textContent = message;
  $("toast").hidden = false;
  clearTimeout(notify.timer);
  notify.timer = setTimeout(() => { $("toast").hidden = true; }, TOAST_MS);
}

/**
 * Shows the position at the cursor, requests its analysis, and plays the network's move if it is its turn. Without a
 * position, each of the buttons that move the cursor tries again; without an analysis, "Move for me" and "Hint" do.
 */
function update(announcement = "") {
  controller.abort();
  controller = new AbortController();
  const { signal } = controller;
  Object.assign(view, { position: null, analysis: null, attention: null, node: null, hint: false, hasFailed: false }); // blocks moves until the position is shown
  document.body.dataset.analysed = false;
  return attempt(async () => {
    const position = await api.position(request(), signal).catch((error) => {
      if (signal.aborted) throw error;
      for (const id of CURSOR_BUTTONS) $(id).disabled = false;
      showFailure("Forward");
      throw error;
    });
    signal.throwIfAborted();
    const resigned = resignedAt(game.cursor);
    if (resigned !== null) Object.assign(position, { over: true, winner: 1 - resigned, legal: [] });
    view.position = position;
    game.steps.splice(0, position.moves.length, ...position.moves);
    history.replaceState(game.source, "", address());
    if (position.over && resigned === null) game.values[game.cursor] = outcome(position);
    showPosition();
    Object.assign(document.body.dataset, { ply: game.cursor, over: position.over, analysed: position.over });
    $("live").textContent = `${announcement} ${$("status-text").textContent}`.trim();
    if (position.over) return;
    const started = performance.now();
    if (settings.attention && shownAttention()) attempt(() => attend(signal));
    const isNetworks = isAtEnd() && !isPersons(position.player);
    view.analysis = await analyse(signal).catch((error) => {
      view.hasFailed = !signal.aborted;
      if (view.hasFailed && isNetworks) showFailure("Move for me");
      throw error;
    });
    signal.throwIfAborted();
    annotate();
    announceHint();
    document.body.dataset.analysed = true;
    if (!isNetworks) return;
    await new Promise((resolve) => setTimeout(resolve, Math.max(0, PAUSE_MS - (performance.now() - started))));
    signal.throwIfAborted();
    const { value, prior, action } = view.analysis, { isBeginner } = engineOf(position.player);
    if (canSwap() && value < 0) swapSides();
    else play(isBeginner ? drawn(position.legal, prior, CARELESSNESS) : action);
  });
}

/** Says that an answer is missing, and which button asks again. */
function showFailure(button) {
  $("status-text").textContent = `No answer. Press ${button} to try again.`;
  $("dot").classList.remove("busy");
}

/** Returns whether the player to move may exchange the sides. */
const canSwap = () =>
  settings.swap && offersSwap() && game.cursor === 1 && isAtEnd() && !game.isSwapped;

/** Exchanges the sides instead of a move. */
function swapSides() {
  if (!canSwap()) return; // a second click
  const { name } = server.board.players[1];
  Object.assign(settings, exchanged());
  game.isSwapped = game.swapsBack = true;
  showControls({ update: change, annotate });
  update(`${capital(name)} swaps the sides.`);
}

/** Takes a swap back: the sides are those from before it, unless a person has chosen others since. */
function unswap() {
  if (game.swapsBack) Object.assign(settings, exchanged());
  game.isSwapped = game.swapsBack = false;
}

async function attend(signal) {
  const attention = await api.attention(request(), networkOf(engineOf(view.position.player)).player, signal);
  signal.throwIfAborted();
  view.attention = attention;
  annotate();
}

async function analyse(signal) {
  const { players } = server.board;
  const analysis = await find(game.cursor, engineOf(view.position.player), signal);
  if (!game.isReviewed) game.values[game.cursor] = valueOf(view.position, analysis);
  for (const move of analysis.variation) move.colour = players[move.player].colour;
  return analysis;
}

/** Returns the analysis of the position after `ply` moves by an engine, and keeps it. */
async function find(ply, engine, signal) {
  const { player } = networkOf(engine), { simulations } = engine;
  const key = `${game.seed} ${game.moves.slice(0, ply)} ${simulations} ${player}`;
  if (!analyses.has(key)) analyses.set(key, await api.analysis(request(ply), player, simulations, signal));
  signal.throwIfAborted();
  return analyses.get(key);
}

/** Returns the engine that reviews games: that of the first level, with at least `REVIEW_SIMULATIONS` if on offer. */
function reviewer() {
  const [engine] = settings.engines, { strengths } = server.info;
  const enough = strengths.filter((simulations) => simulations >= REVIEW_SIMULATIONS);
  return { ...engine, simulations: Math.max(engine.simulations, Math.min(...enough, Math.max(...strengths))) };
}

/** Analyzes every position of the game, and marks the moves that give something away. */
async function review() {
  const { signal } = controller, last = game.moves.length, engine = reviewer();
  const values = [], better = [];
  $("review").disabled = true;
  try {
    for (let ply = 0; ply <= last; ply += 1) {
      $("review").textContent = `Reviewing ${ply} of ${last}`;
      const position = ply === last ? await api.position(request(ply), signal) : null;
      signal.throwIfAborted();
      const analysis = position?.over ? null : await find(ply, engine, signal);
      values[ply] = analysis ? firstValue(analysis) : outcome(position);
      better[ply] = analysis?.variation[0] ?? null;
    }
    Object.assign(game, { values, better, isReviewed: true });
  } finally {
    Object.assign($("review"), { textContent: "Review", disabled: false });
  }
  settings.value = true;
  $("show-value").setAttribute("aria-pressed", true);
  annotate();
}

/** Shows the position before the nearest marked move. */
function toMark(direction) {
  const ply = nearestMark(direction);
  if (ply !== null) goTo(ply);
}

function play(action) {
  const { position } = view, { players } = server.board;
  const move = position?.legal.find((each) => each.action === action);
  if (!move) return;
  if (game.cursor >= server.info.max_moves) {
    notify(`The server replays games of up to ${server.info.max_moves.toLocaleString("en")} moves. Take back, or start a new game.`);
    return;
  }
  if (game.cursor === 0 && game.isSwapped) {
    unswap();
    showControls({ update: change, annotate });
  }
  Object.assign(game, { resigned: null, source: null });
  game.moves.splice(game.cursor, Infinity, action);
  game.steps.splice(game.cursor, Infinity, { action, name: move.name, player: position.player });
  game.values.splice(++game.cursor);
  game.isReviewed = false;
  update(players.length < 2 ? `${move.name}.` : `${capital(players[position.player].name)} plays ${move.name}.`);
}

/** Concedes the game, for the person to move or, on the network's turn, the other one. */
function resign() {
  const { player, over } = view.position ?? { over: true };
  if (over || !isAtEnd()) return;
  Object.assign(game, { resigned: isPersons(player) ? player : 1 - player, source: null });
  update();
}

function goTo(cursor) {
  game.cursor = Math.max(0, Math.min(game.moves.length, cursor));
  update();
}

/** Moves the cursor by `step`, 1 or -1, and on to a position in which a person is to move; takes back a resignation. */
function turn(step) {
  if (step < 0 && resignedAt(game.cursor) !== null) {
    Object.assign(game, { resigned: null, source: null });
    return update();
  }
  let cursor = game.cursor + step;
  if (view.position && (cursor < 0 || cursor > game.moves.length)) return;
  if (settings.sides.slice(0, server.board.players.length).includes("person")) {
    while (cursor > 0 && cursor < game.moves.length && !isPersons(game.steps[cursor].player)) cursor += step;
  }
  goTo(cursor);
}

/** Returns the name of a player for a sentence: that of the file and the colour, or the colour alone. */
function called(player) {
  const { name } = server.board.players[player], given = game.source?.names[player] ?? "";
  return ["", "?"].includes(given) ? capital(name) : `${given} (${name})`;
}

/** Returns the status, and the result in the file where the rules give none or another one. */
function fullStatus(position) {
  const { outcome: told = null, forfeit } = game.source ?? {};
  if (told === null || !isAtEnd() || (position.over && told === outcome(position))) return status(position);
  const result = told ? `${called(told > 0 ? 0 : 1)} wins` : "A draw";
  return `${status(position)}. Result in the file: ${result}${forfeit ? ` (${forfeit})` : ""}`;
}

function status({ over, player, points, winner }) {
  const { players } = server.board;
  const you = players.findIndex((_, each) => isPersons(each));
  const isAlone = players.filter((_, each) => isPersons(each)).length === 1; // "you" is unambiguous
  if (points !== null) return `${over ? "Game over: " : ""}${points.toLocaleString("en")} points`;
  if (over && resignedAt(game.cursor) !== null) {
    const loser = isAlone && isPersons(1 - winner) ? "You" : called(1 - winner);
    return `${loser} resigned: ${game.source ? called(winner) : players[winner].name} wins`;
  }
  if (over && isAlone && winner !== null) return winner === you ? "You win" : "You lose";
  if (over) return winner === null ? "A draw" : `${called(winner)} wins`;
  if (isAlone && player === you) return "Your move";
  return `${called(player)} ${isPersons(player) || !isAtEnd() ? "to move" : "is thinking"}`;
}

function showPosition() {
  const { position } = view, { players, family } = server.board;
  const canPlay = !position.over && (isPersons(position.player) || !isAtEnd());
  const shown = position.over ? position.winner : position.player;
  $("status-text").textContent = fullStatus(position);
  $("dot").style.background = players[shown]?.colour ?? "";
  $("dot").classList.toggle("busy", !position.over && !canPlay);
  $("text").textContent = position.text;
  for (const id of ["move-now", "hint"]) $(id).hidden = position.over;
  $("resign").hidden = position.over || players.length < 2 || !isAtEnd() || !settings.sides.includes("person");
  $("swap-sides").hidden = position.over || !(canSwap() && isPersons(position.player));
  showCounts(position.counts, players);
  showAttentionControls(annotate);
  $("again").hidden = !position.over;
  $("first").disabled = game.cursor === 0;
  $("back").disabled = game.cursor === 0 && resignedAt(0) === null;
  for (const id of ["forward", "last"]) $(id).disabled = isAtEnd();
  board.show(position, family, players[position.player].colour, canPlay);
  annotate();
}

/** Shows the annotations that are switched on. */
function annotate() {
  const { position, analysis, attention, node } = view, { players } = server.board;
  if (!position) return;
  const line = settings.line && analysis ? analysis.variation : null;
  const marked = marks(), better = marked[game.cursor] && game.better[game.cursor];
  const advice = better ? [{ ...better, colour: players[position.player].colour }] : null;
  const hint = view.hint && analysis ? analysis.variation.slice(0, 1) : advice;
  const looking = Boolean(settings.attention && shownAttention());
  board.annotate({
    policy: settings.policy && analysis ? analysis[settings.source] : null,
    line: line ?? hint, looking, node,
    attention: looking && attention ? { ...attention, weights: chosenWeights(attention.weights) } : null,
  });
  showValue(position.over ? outcome(position) : game.values[game.cursor] ?? null, players);
  $("value").hidden = !settings.value || players.length < 2;
  $("chart").hidden = !settings.value;
  $("policy-panel").hidden = !settings.policy || position.over;
  $("line-panel").hidden = !line?.length;
  $("attention-panel").hidden = !looking;
  const hasSearch = engineOf(position.player).simulations > 0;
  $("source").hidden = !hasSearch;
  $("candidates").classList.toggle("without-values", !hasSearch);
  if (settings.policy) showCandidates(position, analysis, settings.source, play);
  if (line) showLine(line);
  showChart(game.values, game.moves.length, game.cursor, players, goTo, marked);
  showMoves(game.steps, game.cursor, players, goTo, marked);
  const networkIsToMove = !position.over && isAtEnd() && !isPersons(position.player); // its move would end a review
  $("review").hidden = players.length < 2 || !game.moves.length || game.isReviewed || networkIsToMove;
  $("reviewed").hidden = !game.isReviewed;
  if (game.isReviewed) {
    $("summary").textContent = summary(players);
    $("verdict").textContent = verdict(marked[game.cursor], game.cursor);
    $("mark-back").disabled = nearestMark(-1) === null;
    $("mark-forward").disabled = nearestMark(1) === null;
  }
}

/** Returns the edge weights in the chosen block: of one head, or the mean over heads. */
function chosenWeights(weights) {
  const heads = weights[view.block];
  return view.head >= 0 ? heads[view.head] : meanOfHeads(heads);
}

/** Shows the network's move without playing it. */
function hint() {
  if (view.hasFailed) update();
  view.hint = true;
  annotate();
  announceHint();
}

/** Tells a screen reader of a hint that is asked for, once its analysis is there. */
function announceHint() {
  const move = view.hint && view.analysis?.variation[0];
  if (move) $("live").textContent = `Hint: ${move.name}.`;
}

/**
 * Starts a game on a board, or continues a saved one at its `ply`, by default the last. A later call supersedes this.
 * Until the board is open, nobody plays on the current one, unless it is the same. If the server rejects the game, the
 * current one stays. The browser's Back restores a replaced game with moves; a game that `isAddressed` has its entry in
 * the history already.
 */
async function open(name, saved = {}, isAddressed = false) {
  opening.abort();
  opening = new AbortController();
  const { signal } = opening, main = document.querySelector("main");
  main.inert = name !== game.board;
  if (main.inert) controller.abort();
  try {
    await replaceGame(name, saved, isAddressed, signal);
  } catch (error) {
    if (!signal.aborted && server.board) {
      $("boards").value = game.board;
      change();
    }
    throw error;
  } finally {
    if (!signal.aborted) main.inert = false;
  }
  await update();
}

async function replaceGame(name, saved, isAddressed, signal) {
  if (!server.info.boards.includes(name)) throw new api.ApiError(`This server does not offer the board ${name}.`);
  $("status-text").textContent = `Opening ${title(name)}`;
  attempt(() => prepare(name));
  const opened = await api.board(name, signal);
  const seed = saved.seed ?? crypto.getRandomValues(new Uint32Array(1))[0];
  const { moves, over } = await api.position({ board: name, seed, moves: saved.moves ?? [] }, signal);
  signal.throwIfAborted();
  const actions = moves.map((step) => step.action);
  analyses.clear();
  const cursor = Math.max(0, Math.min(saved.ply ?? moves.length, moves.length));
  if (game.moves.length && !isAddressed) history.pushState(null, "");
  unswap();
  server.board = opened;
  const resigned = !over && [0, 1].includes(saved.resigned) ? saved.resigned : null, isSwapped = saved.isSwapped ?? false;
  Object.assign(game, { board: name, seed, moves: actions, steps: moves, cursor, values: [], isReviewed: false, resigned, isSwapped });
  game.source = saved.source ?? null;
  game.swapsBack = Boolean(saved.swapsBack && saved.sides);
  Object.assign(view, { block: null, head: -1, file: saved.file ?? null });
  showFile(view.file);
  if (saved.sides) settings.sides = saved.sides;
  else if (moves.length && saved.ply === undefined) settings.sides = ["person", "person"]; // the network does not move in a file
  if (game.swapsBack) settings.engines = exchanged().engines; // stored as before the swap
  $("boards").value = name;
  $("goal").textContent = opened.goal;
  showControls({ update: change, annotate });
  attempt(() => prepare(name));
}

/** Shows the position anew after a change of sides or levels. */
function change() {
  attempt(() => prepare(game.board));
  update();
}

async function start() {
  recall();
  server.info = await api.info();
  const { boards, strengths, simulations } = server.info;
  for (const engine of settings.engines) {
    if (!strengths.includes(engine.simulations)) engine.simulations = simulations;
  }
  $("boards").replaceChildren(...boards.map((name) => html("option", { value: name, textContent: title(name) })));
  listen({
    update, annotate, save,
    open: (name) => attempt(() => open(name)),
    load: (file) => attempt(async () => { const saved = await read(file); await open(saved.board, saved); }),
    pick: (number) => attempt(async () => {
      showFile(view.file); // the chosen game, once it is open
      const saved = await pick(view.file, number);
      await open(saved.board, saved);
    }),
    record: () => attempt(writeRecord),
    newGame: () => attempt(() => open(game.board)),
    toFirst: () => goTo(0),
    toLast: () => goTo(Infinity),
    back: () => turn(-1),
    forward: () => turn(1),
    moveNow: () => (view.hasFailed ? update() : view.analysis && play(view.analysis.action)),
    hint, resign, swapSides,
    toggleSwap: () => {
      settings.swap = !settings.swap;
      keep();
      $("swap").setAttribute("aria-pressed", settings.swap);
      if (view.position) showPosition();
    },
    review: () => attempt(review),
    markBack: () => toMark(-1),
    markForward: () => toMark(1),
  });
  addEventListener("hashchange", () => attempt(openAddressed));
  if (addressed()) await attempt(openAddressed);
  if (!server.board) await open(server.info.default);
}

/** Opens the game in the address. */
async function openAddressed() {
  const saved = addressed();
  if (saved) await open(saved.board, { ...saved, source: history.state }, true);
}

attempt(start);
