// Values and attention for display, from the answers of the server.

/** Returns the result of a finished game for player 0: 1, 0 or -1, or the points of a single-player game. */
export const outcome = ({ points, winner }) => points ?? (winner === null ? 0 : winner === 0 ? 1 : -1);

/** Returns the value of an analysis for player 0 of two. */
export const firstValue = (analysis) => (analysis.player === 0 ? analysis.value : -analysis.value);

/** Returns the value of an analysed position for player 0, or the expected points of a single-player game. */
export const valueOf = ({ points }, analysis) => (points === null ? firstValue(analysis) : points + analysis.value);

/** Returns the mean over heads of the edge weights of a block. */
export const meanOfHeads = (heads) =>
  heads[0].map((_, edge) => heads.reduce((sum, head) => sum + head[edge], 0) / heads.length);

/** Returns an expected time as text; the estimate is in seconds. */
export const about = (estimate) => `about ${Math.max(1, Math.round(estimate))} s`;
