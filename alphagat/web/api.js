// Requests to the server. Errors are instances of ApiError with a one-line message for the user.

const RETRIES = 5;

export class ApiError extends Error {}

/** Awaits an answer or its content; an error of the connection is an ApiError. */
async function received(promise) {
  try {
    return await promise;
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError("The server is not responding. Is it still running?");
  }
}

async function call(path, body, signal, retries = RETRIES) {
  const isText = typeof body === "string"; // of a file
  const options = body === undefined ? { signal } : {
    method: "POST",
    headers: { "content-type": isText ? "text/plain" : "application/json" },
    body: isText ? body : JSON.stringify(body),
    signal,
  };
  const response = await received(fetch(path, options));
  if (response.status === 503 && retries > 0) {
    const seconds = Number(response.headers.get("Retry-After")) || 1;
    await new Promise((resolve) => setTimeout(resolve, 1000 * seconds));
    signal?.throwIfAborted();
    return call(path, body, signal, retries - 1);
  }
  if (!response.ok) {
    const { error } = await response.json().catch(() => ({}));
    throw new ApiError(error || `The server responded with status ${response.status}.`);
  }
  return response;
}

async function json(...request) {
  return received((await call(...request)).json());
}

export const info = () => json("api/info");
export const board = (name, signal) => json(`api/boards/${encodeURIComponent(name)}`, undefined, signal);
export const position = (game, signal) => json("api/position", game, signal);
export const preparation = (board, player, ahead = true) =>
  json(`api/preparation/${encodeURIComponent(board)}?${new URLSearchParams({ player, ahead })}`);
export const analysis = (game, player, simulations, signal) =>
  json("api/analysis", { ...game, player, simulations }, signal);
export const attention = (game, player, signal) => json("api/attention", { ...game, player }, signal);
export const record = async (game, names, outcome, forfeit) =>
  received((await call("api/record", { ...game, names, outcome, forfeit })).text());
export const games = (text, board, number) => json(`api/games?${new URLSearchParams({ board, number })}`, text);
export const run = () => json("api/run");
