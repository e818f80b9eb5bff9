"""Trains the baseline of the results: an AlphaZero loop as in Pgx's documentation, for one core.

    python benchmarks/reference_loop.py --minutes 45 --tuning_minutes 7 --opponents runs/connect_four

Each iteration plays new games from the start on one device, restarts games that end, and stops after a fixed number of
plies. Positions of unfinished games train the policy only. The host shuffles the positions, trains on them in
minibatches with Adam, and discards them. Rules and search are those of AlphaGAT. Pgx's example is for a GPU; here an
iteration plays 128 games for 64 plies instead of 1,024 for 256, a minibatch has 1,024 positions instead of 4,096, and
the network is a ResNet with 3 blocks of 64 channels instead of 6 of 128.

The trained player then plays the latest players of runs. It is compared with perfect play on two sets of positions:
after uniformly random moves, which resemble the starts of AlphaGAT's own runs, and from games of plain MCTS against
itself, which resemble neither.

With `--tuning_minutes` it first trains that long with each of `TUNED`, and keeps the settings whose search finds the
most best moves in the positions from games of MCTS. Otherwise it trains with the first of them.
"""

import argparse
import dataclasses
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax
from rich.console import Console

from alphagat import load
from alphagat.agents.build import make_params
from alphagat.evaluation.arena import play_match
from alphagat.evaluation.mcts import make_mcts, most_visited
from alphagat.evaluation.openings import distinct_openings
from alphagat.evaluation.oracles import CONNECT_FOUR_PLIES, Oracle, OracleTest, make_oracle, score_positions
from alphagat.evaluation.players import search_player
from alphagat.games import make_game
from alphagat.games.base import Game
from alphagat.games.batches import count, take
from alphagat.games.states import select
from alphagat.games.symmetries import permute_actions, permute_nodes, random_symmetries
from alphagat.games.transition import transition
from alphagat.networks import make_network
from alphagat.runtime import sharding
from alphagat.search import make_network_evaluator, make_search

SEARCH = {"algorithm": "gumbel", "max_num_considered_actions": 16, "min_value_range": 0.0}


@dataclasses.dataclass(frozen=True)
class Settings:
    """What is tuned; the defaults are like those of Pgx's example, with smaller batches for a core."""

    learning_rate: float = 1e-3
    batch_size: int = 1024
    passes: int = 1  # times that each position is trained on
    symmetries: bool = False  # train under random symmetries of the board
    games: int = 128  # games at once; an iteration plays 64 plies of each


TUNED = (
    Settings(),
    Settings(batch_size=256, symmetries=True, learning_rate=3e-3),
    Settings(batch_size=256, symmetries=True, learning_rate=1e-2),
    Settings(batch_size=256, symmetries=True, passes=4),
    Settings(batch_size=256, symmetries=True, passes=4, learning_rate=3e-3),
    Settings(batch_size=256, symmetries=True, passes=4, learning_rate=1e-2),
    Settings(batch_size=256, symmetries=True, passes=4, games=32, learning_rate=3e-3),
)


class ReferenceLoop:
    """The loop; `params` are its state."""

    def __init__(self, options: argparse.Namespace, settings: Settings):
        self.options, self.settings, self.game = options, settings, make_game(options.board)
        self.network = make_network(
            self.game.topology, name="resnet", backend="dense", width=64, num_blocks=3, num_heads=1, mlp_ratio=1
        )
        self.evaluate = make_network_evaluator(self.game, self.network)
        self.optimizer = optax.adam(settings.learning_rate)
        self.params = make_params(self.game, self.network, jax.random.key(options.seed))
        self.opt_state = self.optimizer.init(self.params)
        self.search = self.make_search(options.simulations, explore=True)
        self.match_search = self.make_search(options.match_simulations, explore=False)
        self._play, self._update = jax.jit(self.play), jax.jit(self.update)

    def make_search(self, num_simulations: int, explore: bool):
        options = {**SEARCH, "value_scale": 0.1 if explore else 1.0, "num_simulations": num_simulations}
        return make_search(self.game, self.evaluate, explore=explore, **options)

    def play(self, params, key):
        """Returns `[T * B]` features, legal actions, policy targets, value targets, and a mask of the known ones."""
        init_key, key = jax.random.split(key)
        start = jax.vmap(self.game.init)(jax.random.split(init_key, self.settings.games))

        def ply(states, key):
            search_key, step_key = jax.random.split(key)
            found = self.search(params, search_key, states, jnp.zeros(len(states.terminated), jnp.int32))
            after = jax.vmap(self.game.step)(states, found.action, jax.random.split(step_key, self.settings.games))
            reward, discount = jax.vmap(transition)(states, after)
            nodes = jax.vmap(self.game.observe)(states)
            seen = (nodes, states.legal_action_mask, found.policy_target, reward, discount, after.terminated)
            return select(after.terminated, start, after), seen

        _, (nodes, legal, policy, reward, discount, ended) = jax.lax.scan(
            ply, start, jax.random.split(key, self.options.plies)
        )

        def backward(value, ply):
            reward, discount = ply
            value = reward + discount * value
            return value, value

        _, values = jax.lax.scan(backward, jnp.zeros(self.settings.games), (reward, discount), reverse=True)
        known = jnp.cumsum(ended[::-1], axis=0)[::-1] > 0
        return jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), (nodes, legal, policy, values, known))

    def update(self, params, opt_state, key, nodes, legal, policy, values, known):
        if self.settings.symmetries:
            index = random_symmetries(key, len(nodes), self.game.symmetries)
            nodes = permute_nodes(nodes, index, self.game.symmetries)
            legal, policy = (permute_actions(each, index, self.game.symmetries) for each in (legal, policy))

        def loss(params):
            logits, output = self.network.apply(params, nodes)
            masked = jnp.where(legal, logits, jnp.finfo(logits.dtype).min)
            errors = known * optax.l2_loss(output, values)
            return optax.softmax_cross_entropy(masked, policy).mean() + errors.mean()

        updates, opt_state = self.optimizer.update(jax.grad(loss)(params), opt_state)
        return optax.apply_updates(params, updates), opt_state

    def train(self, minutes: float, console: Console) -> None:
        """Trains for `minutes`, which exclude compilation."""
        settings, shuffle = self.settings, np.random.default_rng(self.options.seed)
        start = time.perf_counter()
        iteration, num_updates = 0, 0
        while iteration < 2 or time.perf_counter() - start < 60 * minutes:
            key = jax.random.fold_in(jax.random.key(self.options.seed), iteration)
            samples = [np.asarray(x) for x in self._play(self.params, key)]
            for _ in range(settings.passes):
                order = shuffle.permutation(len(samples[0]))
                whole = len(order) // settings.batch_size * settings.batch_size  # the rest is left out
                for batch in order[:whole].reshape(-1, settings.batch_size):
                    key = jax.random.key(shuffle.integers(2**31))
                    rows = (x[batch] for x in samples)
                    self.params, self.opt_state = self._update(self.params, self.opt_state, key, *rows)
                    num_updates += 1
            jax.block_until_ready(self.params)
            iteration += 1
            if iteration == 1:
                start = time.perf_counter()
        frames, seconds = (iteration - 1) * settings.games * self.options.plies, time.perf_counter() - start
        text = f"{iteration} iterations, {num_updates} updates of {settings.batch_size} positions, {frames:,} frames"
        console.print(f"{settings}\n{text}, {frames / seconds:.0f} frames/s, {seconds / 60:.1f} minutes")

    def measure(self, oracle: Oracle) -> dict[str, float]:
        """Returns the shares of `OracleTest`, with the search of the match."""
        return OracleTest(oracle, self.evaluate, self.match_search).measure(self.params, jax.random.key(0))


def tune(options: argparse.Namespace, oracle: Oracle, console: Console) -> Settings:
    """Trains with each of `TUNED`, and returns the settings with the most best moves found by search."""
    found = {}
    for settings in TUNED:
        loop = ReferenceLoop(options, settings)
        loop.train(options.tuning_minutes, console)
        shares = loop.measure(oracle)
        console.print(f"  {shares_text(shares)}")
        found[settings] = shares["best_move_search"]
    return max(found, key=lambda settings: found[settings])


def shares_text(shares: dict[str, float]) -> str:
    return ", ".join(f"{name} {shares[name]:.3f}" for name in ("best_move", "best_move_search", "value_sign"))


def mcts_oracle(game: Game, num_positions: int, seed: int) -> Oracle:
    """Solves one position from each of `num_positions` games that MCTS with 50 rollouts plays against itself.

    A random ply of each game is taken, uniformly among plies 12 to 34; a game that ends earlier yields none. A third of
    the moves are uniformly random, so that games differ and mistakes occur.
    """
    search = make_mcts(game, 50)
    low, high = CONNECT_FOUR_PLIES
    plies = np.random.default_rng(seed).integers(low, high + 1, num_positions)

    @jax.jit
    def play(states, kept, ply):
        keys = jax.random.split(jax.random.fold_in(jax.random.key(seed), ply), 5)
        actions = most_visited(keys[0], search(keys[1], states))
        random = jax.random.categorical(keys[2], jnp.where(states.legal_action_mask, 0.0, -1e9)).astype(jnp.int32)
        actions = jnp.where(jax.random.uniform(keys[3], actions.shape) < 1 / 3, random, actions)
        after = jax.vmap(game.step)(states, actions, jax.random.split(keys[4], num_positions))
        after = select(states.terminated, states, after)
        return after, select(ply + 1 == plies, after, kept)

    states = jax.jit(jax.vmap(game.init))(jax.random.split(jax.random.key(seed), num_positions))
    kept = states
    for ply in range(high):
        states, kept = play(states, kept, ply)
    kept = jax.device_get(kept)
    kept = take(kept, np.flatnonzero(~kept.terminated))
    return Oracle(kept, score_positions(game, kept), np.zeros(count(kept), np.int32))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--board", default="connect_four")
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--tuning_minutes", type=float, default=0, help="per setting; 0 takes the first")
    parser.add_argument("--plies", type=int, default=64, help="plies per game and iteration")
    parser.add_argument("--simulations", type=int, default=32, help="simulations per move in training")
    parser.add_argument("--opponents", nargs="*", type=Path, default=[], help="run folders")
    parser.add_argument("--match_games", type=int, default=400)
    parser.add_argument("--match_simulations", type=int, default=64)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    sharding.configure_cpu_devices(1)
    console = Console(soft_wrap=True)
    game = make_game(options.board)
    oracles = {"random": make_oracle(game, 2000, options.seed), "MCTS": mcts_oracle(game, 2000, options.seed)}
    settings = tune(options, oracles["MCTS"], console) if options.tuning_minutes else Settings()
    loop = ReferenceLoop(options, settings)
    loop.train(options.minutes, console)
    for kind, oracle in oracles.items():
        console.print(f"reference, positions of {kind} games: {shares_text(loop.measure(oracle))}")
    player = search_player("reference", loop.match_search, loop.params)
    openings = distinct_openings(game, options.match_games // 2, options.seed)
    for folder in options.opponents:
        agent = load(folder)
        for kind, oracle in oracles.items():
            shares = OracleTest(oracle, agent.evaluator, agent.search(options.match_simulations)).measure(
                agent.params, jax.random.key(0)
            )
            console.print(f"{folder}, positions of {kind} games: {shares_text(shares)}")
        result = play_match(
            game, agent.player(options.match_simulations), player, openings, jax.random.key(options.seed)
        )
        console.print(f"{folder} against the reference: {result.score:.1%} ({result.interval_text})")


if __name__ == "__main__":
    main()
