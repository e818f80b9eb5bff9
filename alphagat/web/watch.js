// The live view of a run: its curves, and games of its newest network against itself.

import * as api from "./api.js";
import { Board } from "./board.js";
import { drawn } from "./choice.js";
import { $, capital, html, segments } from "./dom.js";
import { showChart, showCounts, showMoves, showValue, title } from "./panels.js";
import { about, meanOfHeads, outcome, valueOf } from "./values.js";

const POLL_MS = 3000; // between looks at the run
const END_MS = 3000; // for which a finished game stays
const SLOW_MS = 1000; // after which an answer is announced as slow
const SILENT_MINUTES = 2; // after which the page says that the run is silent: it may have ended
const DRAWN_PLIES = 6; // at the start of a game, drawn from the policy so that games differ
const SPEEDS = [[1500, "Slow"], [700, "Normal"], [150, "Fast"]]; // milliseconds per move
const AXES = [["iterations", "Iterations"], ["frames", "Frames"], ["hours", "Hours"]];

const shown = {
  game: null, cursor: 0, position: null, analysis: null, attention: null, policyIsOn: false, attentionIsOn: true,
  turn: 0, // of the last request for a position: answers to earlier ones are not shown
};
const RUN = "run", GAME = "game"; // topics of messages
const messages = new Map(); // by topic, the latest one last
const pace = { milliseconds: 700, isPaused: false, wake: () => {} };
let game = { board: null, seed: 0, moves: [], steps: [], values: [], number: 0, isSkipped: false };
let run = null, simulations = 0, maxMoves = Infinity, axis = "iterations", drawnCharts = "";

const board = new Board($("board"), $("choices"), { onPlay: () => {}, onLook: () => {} });

/** Waits, and as long as the game is paused. A skipped game ends the wait. */
async function wait(milliseconds) {
  const sleep = (time) => new Promise((resolve) => { pace.wake = resolve; if (time < Infinity) setTimeout(resolve, time); });
  if (!game.isSkipped) await sleep(milliseconds);
  while (pace.isPaused && !game.isSkipped) await sleep(Infinity);
}

/** Runs an action, and shows the message of an ApiError until an action of the same `topic` succeeds. */
async function attempt(topic, action) {
  try {
    await action();
    say(topic, "");
  } catch (error) {
    if (!(error instanceof api.ApiError)) throw error;
    say(topic, error.message);
  }
}

/** Shows the latest message of all topics; an empty one ends that of its topic. */
function say(topic, message) {
  if (messages.get(topic) === message) return;
  messages.delete(topic);
  if (message) messages.set(topic, message);
  const latest = [...messages.values()].at(-1) ?? "";
  $("toast").hidden = !latest;
  if (latest !== $("toast").textContent) $("toast").textContent = latest;
}

/** Repeats an action for ever, `pause` milliseconds apart, or `POLL_MS` after an error. */
async function repeat(topic, action, pause) {
  for (;;) {
    await attempt(topic, action);
    await new Promise((resolve) => setTimeout(resolve, messages.has(topic) ? POLL_MS : pause));
  }
}

async function playGame() {
  const name = run.boards[game.number % run.boards.length];
  const described = await api.board(name), seed = crypto.getRandomValues(new Uint32Array(1))[0];
  game = { board: described, seed, moves: [], steps: [], values: [], number: game.number, isSkipped: false };
  const network = run.network; // the newest at the start; a newer one may take over during the game
  while (!game.isSkipped) {
    const ply = game.moves.length, position = await show(ply);
    say(GAME, "");
    $("status-text").textContent = `${title(name)}: network of iteration ${network.toLocaleString("en")}`;
    document.body.dataset.ply = ply;
    if (position.over) {
      $("status-text").textContent = result(position);
      return wait(END_MS);
    }
    if (ply >= maxMoves) {
      $("status-text").textContent = `Stopped after ${ply.toLocaleString("en")} moves, the most that the server replays`;
      return wait(END_MS);
    }
    await wait(pace.milliseconds);
    const { analysis } = await analysed(ply, position);
    await wait(0); // it may have been paused meanwhile
    const action = ply < DRAWN_PLIES ? drawn(position.legal, analysis.policy) : analysis.action;
    game.moves.splice(ply, Infinity, action);
  }
}

function result({ points, winner }) {
  if (points !== null) return `Game over: ${points.toLocaleString("en")} points`;
  return winner === null ? "A draw" : `${capital(game.board.players[winner].name)} wins`;
}

const requested = ({ board: { board }, seed, moves }, ply) => ({ board, seed, moves: moves.slice(0, ply) });

/** Shows the position after `ply` moves with its analysis, unless another one is requested meanwhile; returns it. */
async function show(ply) {
  const turn = ++shown.turn, played = game, { players, family } = played.board;
  const position = await api.position(requested(played, ply));
  played.steps = [...position.moves, ...played.steps.slice(ply)];
  if (position.over) played.values[ply] = outcome(position);
  if (turn !== shown.turn) return position;
  Object.assign(shown, { game: played, cursor: ply, position, analysis: null, attention: null });
  board.show(position, family, players[position.player].colour, false);
  showCounts(position.counts, players);
  const leader = position.over ? position.winner : position.player;
  $("dot").style.background = players[leader]?.colour ?? "";
  annotate();
  if (!position.over) await analysed(ply, position);
  return position;
}

/** Returns the analysis and the attention of `position` after `ply` moves, and shows them if it is on display. */
async function analysed(ply, position) {
  const played = game, isShown = () => shown.game === played && shown.cursor === ply;
  if (isShown() && shown.analysis) return shown;
  const request = requested(played, ply);
  let isAwaited = true;
  const late = setTimeout(() => attempt(GAME, () => announce(() => isAwaited)), SLOW_MS);
  try {
    const [analysis, attention] = await Promise.all([
      api.analysis(request, "", simulations),
      played.board.networks[0].attention ? api.attention(request, "") : null,
    ]);
    played.values[ply] = valueOf(position, analysis);
    if (isShown()) Object.assign(shown, { analysis, attention });
    annotate();
    return { analysis, attention };
  } finally {
    clearTimeout(late);
    isAwaited = false;
    $("preparing").hidden = true;
  }
}

/** Says that the network compiles, with an estimate, if the answer is still awaited when the estimate arrives. */
async function announce(isAwaited) {
  const { estimate } = await api.preparation(game.board.board, "", false);
  if (!isAwaited()) return;
  $("preparing").textContent = `Preparing the network: ${about(estimate)}. This happens once.`;
  $("preparing").hidden = false;
}

function annotate() {
  const { position, analysis, attention, cursor, game: { board: { players }, moves, steps, values } } = shown;
  board.annotate({
    policy: shown.policyIsOn && analysis ? analysis.policy : null, line: null, looking: false, node: null,
    attention: shown.attentionIsOn && attention ? { ...attention, weights: meanOfHeads(attention.weights.at(-1)) } : null,
  });
  showValue(values[cursor] ?? null, players);
  showChart(values, moves.length, cursor, players, look, []);
  showMoves(steps, cursor, players, look, []);
  document.body.dataset.analysed = Boolean(analysis) || position.over;
}

/** Pauses at an earlier position. */
function look(ply) {
  setPaused(true);
  attempt(GAME, () => show(Math.min(ply, game.moves.length))); // the list may still be that of the game before
}

function setPaused(isPaused) {
  pace.isPaused = isPaused;
  $("pause").textContent = isPaused ? "Resume" : "Pause";
  if (isPaused) return;
  if (shown.cursor !== game.moves.length) attempt(GAME, () => show(game.moves.length));
  pace.wake();
}

async function follow() {
  run = await api.run();
  document.title = `${run.name}: iteration ${run.iteration}`;
  $("name").textContent = run.name;
  const minutes = Math.floor((run.silent_s ?? 0) / 60);
  const silence = minutes >= SILENT_MINUTES && run.iteration < run.end ? `; nothing new for ${minutes} min` : "";
  $("progress-text").textContent =
    `Iteration ${run.iteration.toLocaleString("en")} of ${run.end.toLocaleString("en")}${silence}`;
  Object.assign($("progress"), { max: run.end, value: run.iteration });
  $("tiles").replaceChildren(...run.tiles.map(({ label, value, interval }) => html("div", {},
    html("dt", { textContent: label }), html("dd", { textContent: value }, html("small", { textContent: interval })))));
  document.body.dataset.network = run.network;
  drawCharts();
}

/** Draws the curves if they have changed. */
function drawCharts() {
  const key = JSON.stringify([axis, run.charts]);
  if (key === drawnCharts) return;
  drawnCharts = key;
  const offered = AXES.filter(([name]) => run.charts.some(({ drawings }) => drawings[name]));
  segments($("axis"), offered, axis, (name) => { axis = name; drawCharts(); });
  $("charts").replaceChildren(...run.charts.filter(({ drawings }) => drawings[axis]).map(({ title: name, legend, drawings }) => {
    const entries = legend.map(({ label, value, colour }) => {
      const entry = html("span", { textContent: `${label} ` }, html("b", { textContent: value }));
      entry.style.setProperty("--colour", colour);
      return entry;
    });
    const parsed = new DOMParser().parseFromString(drawings[axis].replace("<svg", '<svg xmlns="http://www.w3.org/2000/svg"'), "image/svg+xml");
    const head = html("figcaption", {}, html("h3", { textContent: name }), html("p", { className: "legend" }, ...entries));
    return html("figure", {}, head, document.importNode(parsed.documentElement, true));
  }));
}

async function start() {
  segments($("speed"), SPEEDS, pace.milliseconds, (milliseconds) => { pace.milliseconds = milliseconds; pace.wake(); });
  $("pause").addEventListener("click", () => setPaused(!pace.isPaused));
  $("next").addEventListener("click", () => {
    game.isSkipped = true;
    setPaused(false);
  });
  for (const name of ["policy", "attention"]) {
    const button = $(`show-${name}`);
    button.addEventListener("click", () => {
      shown[`${name}IsOn`] = !shown[`${name}IsOn`];
      button.setAttribute("aria-pressed", shown[`${name}IsOn`]);
      annotate();
    });
  }
  repeat(RUN, follow, POLL_MS);
  repeat(GAME, async () => {
    if (!run) return;
    ({ simulations, max_moves: maxMoves } = await api.info());
    await playGame();
    game.number += 1;
  }, 100);
}

start();
