// Follows the preparation of the networks, which compile ahead on the server, and says so while it lasts.

import * as api from "./api.js";
import { levelName } from "./controls.js";
import { $ } from "./dom.js";
import { hasTwoEngines, networkOf, server, settings } from "./state.js";
import { about } from "./values.js";

const POLL_MS = 700;

let turn = 0; // of the latest call, which ends the earlier ones

/** Prepares all levels of the networks that play a board; returns when none is pending, or at the next call. */
export async function prepare(board) {
  const mine = ++turn;
  for (;;) {
    const isOpen = server.board?.board === board; // else only the board's first network is known
    const engines = settings.engines.slice(0, isOpen && hasTwoEngines() ? 2 : 1);
    const network = (engine) => (isOpen ? networkOf(engine).player : "");
    const asked = Promise.all(engines.map((engine) => api.preparation(board, network(engine))));
    const answers = await asked.catch((error) => {
      if (isOpen && error instanceof api.ApiError) return null; // asks again; a board that opens gets another call
      throw error;
    });
    if (mine !== turn) return;
    if (answers) {
      const text = describe(engines, answers);
      // The text changes with every answer. A screen reader that read each of them would say nothing else.
      if ($("preparing").hidden !== !text) $("live").textContent = text || "The preparation has ended.";
      $("preparing").textContent = text;
      $("preparing").hidden = !text;
      document.body.dataset.prepared = !text;
      if (!text) return;
    }
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    if (mine !== turn) return;
  }
}

/** Returns whether a level is neither ready nor failed; a request for a failed one gets the error. */
const isPending = ({ ready, failed }) => !ready && !failed;

/** Returns one sentence on what is pending; empty if nothing is. */
function describe(engines, answers) {
  for (const [number, engine] of engines.entries()) {
    const { strengths, estimate } = answers[number];
    const level = strengths.find(({ simulations }) => simulations === engine.simulations), { elapsed } = level;
    if (!isPending(level)) continue;
    const whole = about(estimate);
    const time = elapsed > estimate ? `${Math.round(elapsed)} s so far` : elapsed ? `${Math.round(elapsed)} s of ${whole}` : whole;
    return `Preparing the network, level ${levelName(engine)}: ${time}. This happens once.`;
  }
  const all = answers.flatMap(({ strengths }) => strengths), ready = all.filter((each) => each.ready);
  return all.some(isPending) ? `Preparing the other levels: ${ready.length} of ${all.length} are ready.` : "";
}
