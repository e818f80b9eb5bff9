// Draws moves by chance.

/**
 * Draws a legal move from a policy, or, with the probability `carelessness`, from all legal moves alike. `shares` is the
 * policy, one share per legal move.
 */
export function drawn(legal, shares, carelessness = 0) {
  const weights = shares.map((share) => (1 - carelessness) * share + carelessness / legal.length);
  let rest = Math.random() * weights.reduce((sum, weight) => sum + weight, 0);
  return (legal.find((_, number) => (rest -= weights[number]) < 0) ?? legal[0]).action;
}
