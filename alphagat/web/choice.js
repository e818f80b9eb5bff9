// Draws moves by chance.

/** Draws a legal move with probabilities proportional to the shares to the power `power`; below 1 flattens them. */
export function drawn(legal, shares, power = 1) {
  const weights = shares.map((share) => share ** power);
  let rest = Math.random() * weights.reduce((sum, weight) => sum + weight, 0);
  return (legal.find((_, number) => (rest -= weights[number]) < 0) ?? legal[0]).action;
}
