// The controls beside the board: sides, strength, annotations, buttons and keys.

import { $, capital, html, segments } from "./dom.js";
import { SHOWN, game, hasTwoEngines, keep, networkOf, offersSwap, server, settings, shownAttention, view } from "./state.js";

const KEYS_MS = 500; // without another key, after which a choice by keys counts
const NAMES = { 0: "Easy", 16: "Medium", 64: "Hard", 256: "Expert" };

/** Returns the levels, weakest first. A beginner plays the moves of the network alone, by chance. */
function levels(strengths) {
  const named = strengths.map((simulations) => ({
    name: NAMES[simulations] ?? String(simulations), simulations, isBeginner: false,
    title: simulations ? `${simulations} simulations per move` : "The network alone, without search",
  }));
  return [{ name: "Beginner", simulations: 0, isBeginner: true, title: "Plays about half of its moves at random" }, ...named];
}

/** Returns whether an engine plays at a level. */
const isLevelOf = (engine) => ({ simulations, isBeginner }) =>
  simulations === engine.simulations && isBeginner === engine.isBeginner;

/** Returns the name of an engine's level. */
export const levelName = (engine) => levels(server.info.strengths).find(isLevelOf(engine))?.name ?? "";

/** Fills the controls for the current board. Calls `update` after changes to the game, else `annotate`. */
export function showControls({ update, annotate }) {
  const { players, record } = server.board;
  const choose = (field, then) => (value) => {
    settings[field] = value;
    if (field === "sides") game.swapsBack = false;
    keep();
    then();
  };
  const again = () => { showControls({ update, annotate }); update(); };
  const sides = players.length < 2
    ? [["person", "Yourself"], ["network", "Network"]]
    : [["person,network", capital(players[0].name)], ["network,person", capital(players[1].name)],
      ["person,person", "Both"], ["network,network", "Neither"]];
  if (!sides.some(([value]) => value === String(settings.sides))) settings.sides = sides[0][0].split(",");
  segments($("sides"), sides, String(settings.sides), (value) => choose("sides", again)(value.split(",")));
  $("swap-rule").hidden = !offersSwap();
  $("swap").setAttribute("aria-pressed", settings.swap);
  for (const player of [0, 1]) showEngine(player, again);
  const sources = [["policy", "With search"], ["prior", "Network alone"]];
  segments($("source"), sources, settings.source, choose("source", annotate));
  showAttentionControls(annotate);
  $("record").hidden = !record;
  $("record").textContent = (record ?? "").slice(1).toUpperCase();
  for (const name of SHOWN) $(`show-${name}`).setAttribute("aria-pressed", settings[name]);
}

/** Fills the choices of block and head for the network that analyses the position. */
export function showAttentionControls(annotate) {
  const attention = shownAttention(), { blocks, heads } = attention ?? { blocks: [], heads: 0 };
  view.block = attention ? Math.min(view.block ?? Infinity, blocks.length - 1) : null;
  if (view.head >= heads) view.head = -1;
  const blockChoices = blocks.map((block, index) => [index, String(block + 1)]);
  const headChoices = Array.from({ length: heads }, (_, head) => [head, String(head + 1)]);
  segments($("blocks"), blockChoices, view.block, (value) => { view.block = value; annotate(); });
  segments($("heads"), [[-1, "All"], ...headChoices], view.head, (value) => { view.head = value; annotate(); });
  $("show-attention").disabled = !attention;
}

/** Shows the level and, if there are several, the network of an engine; the second only if two play each other. */
function showEngine(number, again) {
  const engine = settings.engines[number], { players, networks } = server.board, areTwo = hasTwoEngines();
  $(`engine-${number}`).hidden = number === 1 && !areTwo;
  $(`engine-${number}-name`).textContent = areTwo ? `Level of ${players[number].name}` : "Level";
  const choices = levels(server.info.strengths);
  const chosen = choices.findIndex(isLevelOf(engine));
  const change = (fields) => {
    Object.assign(engine, fields);
    keep();
    again();
  };
  segments($(`strengths-${number}`), choices.map(({ name, title }, level) => [level, name, title]), chosen, (level) => {
    const { simulations, isBeginner } = choices[level];
    change({ simulations, isBeginner });
  });
  const menu = $(`network-${number}`);
  menu.hidden = networks.length < 2;
  menu.replaceChildren(...networks.map(({ player }) =>
    html("option", { value: player, textContent: player === "shipped" ? "AlphaGAT's own network" : player })));
  menu.value = networkOf(engine).player;
  menu.onchange = () => change({ network: menu.value });
}

/** Switches an annotation on or off. */
export function toggle(name, { update, annotate }) {
  if ($(`show-${name}`).disabled) return;
  settings[name] = !settings[name];
  $(`show-${name}`).setAttribute("aria-pressed", settings[name]);
  keep();
  if (name === "attention" && settings.attention) update();
  else annotate();
}

/**
 * Calls `choose(value)` for each choice in a menu. Arrow keys choose in a closed menu, so a choice by keys waits for
 * `KEYS_MS` without another key, for Enter, or until the focus leaves the menu.
 */
function onChoice(menu, choose) {
  let isByKey = false, timer = null;
  const end = () => {
    if (timer === null) return;
    clearTimeout(timer);
    timer = null;
    choose(menu.value);
  };
  const begin = () => {
    clearTimeout(timer);
    timer = setTimeout(end, isByKey ? KEYS_MS : 0);
  };
  menu.addEventListener("pointerdown", () => { isByKey = false; });
  menu.addEventListener("keydown", (event) => {
    isByKey = true;
    if (event.key === "Enter") end();
    else if (timer !== null) begin();
  });
  menu.addEventListener("change", begin);
  menu.addEventListener("blur", end);
}

/** Binds buttons and keys to the actions of the page. */
export function listen(actions) {
  const show = (name) => () => toggle(name, actions);
  const help = () => $("help").showModal();
  const clicks = {
    new: actions.newGame, again: actions.newGame, first: actions.toFirst, last: actions.toLast, back: actions.back,
    forward: actions.forward, "move-now": actions.moveNow, hint: actions.hint, resign: actions.resign,
    swap: actions.toggleSwap, "swap-sides": actions.swapSides, review: actions.review, "mark-back": actions.markBack,
    "mark-forward": actions.markForward, save: actions.save, load: () => $("file").click(), record: actions.record,
    "help-open": help, ...Object.fromEntries(SHOWN.map((name) => [`show-${name}`, show(name)])),
  };
  for (const [id, action] of Object.entries(clicks)) $(id).addEventListener("click", action);
  onChoice($("boards"), actions.open);
  $("file").addEventListener("change", (event) => {
    if (event.target.files[0]) actions.load(event.target.files[0]);
    event.target.value = "";
  });
  $("games").addEventListener("change", (event) => actions.pick(Number(event.target.value)));
  const keys = {
    u: actions.back, r: actions.forward, n: actions.newGame, m: actions.moveNow, h: actions.hint, "?": help,
    v: show("value"), p: show("policy"), l: show("line"), a: show("attention"),
  };
  document.addEventListener("keydown", (event) => {
    const isTyping = event.target.matches("select, input:not([type=radio])");
    const isBlocked = $("help").open || document.querySelector("main").inert;
    if (event.ctrlKey || event.metaKey || event.altKey || isBlocked || isTyping) return;
    keys[event.key]?.();
  });
}
