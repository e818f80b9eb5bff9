"""A slow reference of self-play in one group of games: every game, ply and sample on its own."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from alphagat.config import Config
from alphagat.games.base import Game
from alphagat.search import Search
from alphagat.selfplay.ply import Ply
from alphagat.training.state import Sample

Tree = Any


class Rules:
    """The functions of a game, compiled for one state."""

    def __init__(self, game: Game):
        self.game, self.num_actions, self.symmetries = game, game.num_actions, game.symmetries
        self._init, self._step, self._observe = jax.jit(game.init), jax.jit(game.step), jax.jit(game.observe)
        self.first = self.init(jax.random.key(0))

    def init(self, key: jax.Array) -> Tree:
        return jax.device_get(self._init(key))

    def step(self, state: Tree, action: int, key: jax.Array) -> Tree:
        return jax.device_get(self._step(state, np.int32(action), key))

    def observe(self, state: Tree) -> np.ndarray:
        return np.asarray(self._observe(state))

    def ownership(self, state: Tree) -> np.ndarray:
        return np.asarray(self.game.ownership(state, np.bool_(True)))


class Opened(NamedTuple):
    state: Tree
    plies: int


def open_game(rules: Rules, key: jax.Array, opening_plies: int) -> Opened:
    """Starts a game with 0 to `opening_plies` uniformly random moves, none of which ends it."""
    init_key, length_key, moves_key = jax.random.split(key, 3)
    length = int(jax.random.randint(length_key, (), 0, opening_plies + 1))
    state, plies = rules.init(init_key), 0
    for move_key in jax.random.split(moves_key, opening_plies)[:length]:
        action_key, step_key = jax.random.split(move_key)
        logits = np.where(np.asarray(state.legal_action_mask), 0.0, -np.inf)
        after = rules.step(state, int(jax.random.categorical(action_key, jnp.asarray(logits))), step_key)
        if not after.terminated:
            state, plies = after, plies + 1
    return Opened(state, plies)


class Group:
    """Games, the plies that wait for targets, and a ring of samples.

    Attributes:
      games: the open games.
      waiting: the waiting plies: a list over time of lists over games.
      ring: the samples; the oldest is at `cursor` once the ring is full.
      size: samples in the ring.
    """

    def __init__(
        self, config: Config, rules: Rules, key: jax.Array, *, num_games: int, num_waiting: int, capacity: int
    ):
        self._config, self._rules = config, rules
        self.games = [self._open(each) for each in jax.random.split(key, num_games)]
        self.waiting = [[self._blank(game.state) for game in self.games] for _ in range(num_waiting)]
        blank = self._blank(rules.first)
        empty = Sample(blank.state, blank.policy_target, blank.policy_weight, np.float32(0), blank.auxiliary)
        self.ring, self.cursor, self.size = [jax.tree.map(np.zeros_like, empty)] * capacity, 0, 0

    def play(self, params: Tree, key: jax.Array, full: Search, fast: Search, is_full: np.ndarray) -> list[list[Ply]]:
        """Plays one ply in every game for each item of `is_full`; returns the new plies."""
        rows = []
        for ply_key, full_here in zip(jax.random.split(key, len(is_full)), is_full):
            search_key, step_key, open_key = jax.random.split(ply_key, 3)
            states, plies = stack([game.state for game in self.games]), np.array([game.plies for game in self.games])
            search = full if full_here else fast
            found = jax.device_get(search(params, search_key, states, plies.astype(np.int32)))
            keys = zip(*(jax.random.split(each, len(self.games)) for each in (step_key, open_key)))
            rows.append([self._move(number, found, full_here, *each) for number, each in enumerate(keys)])
        played = self._redistribute(rows)
        self.waiting += played
        return played

    def release(self, num_plies: int) -> list[Sample]:
        """Removes the oldest plies from those that wait; returns the samples of the full searches by ply, then game."""
        samples = [
            self._sample([row[number] for row in self.waiting], ply)
            for ply in range(num_plies)
            if self.waiting[ply][0].is_full
            for number in range(len(self.games))
        ]
        self.waiting = self.waiting[num_plies:]
        return samples

    def store(self, samples: list[Sample]) -> None:
        for sample in samples:
            self.ring[self.cursor] = sample
            self.cursor = (self.cursor + 1) % len(self.ring)
            self.size = min(self.size + 1, len(self.ring))

    def _open(self, key: jax.Array) -> Opened:
        return open_game(self._rules, key, self._config.selfplay.opening_plies)

    def _move(
        self, number: int, found: Tree, is_full: bool, step_key: jax.Array, open_key: jax.Array
    ) -> tuple[Ply, float]:
        """Moves in one game; returns the ply, and how much its search surprised the network."""
        selfplay, rules, before = self._config.selfplay, self._rules, self.games[number]
        after = rules.step(before.state, found.action[number], step_key)
        mover, length = int(before.state.current_player), before.plies + 1
        cap = selfplay.max_plies or rules.game.max_plies
        truncated = not after.terminated and length >= min(cap, rules.game.max_plies)
        ended = bool(after.terminated) or truncated
        rewards = after.rewards + rules.game.truncation_rewards(after) if truncated else after.rewards
        sign = 1 if after.current_player == mover else -1
        ply = Ply(
            state=before.state,
            action=np.int32(found.action[number]),
            policy_target=found.policy_target[number],
            is_full=np.bool_(is_full),
            policy_weight=np.float32(is_full),
            search_value=found.value[number],
            reward=np.float32(rewards[mover]),
            discount=np.float32(0 if ended else sign * self._config.search.discount),
            ended=np.bool_(ended),
            truncated=np.bool_(truncated),
            length=np.int32(length),
            auxiliary=self._auxiliary(lambda: rules.ownership(after)),
        )
        self.games[number] = self._open(open_key) if ended else Opened(after, length)
        return ply, float(found.surprise[number])

    def _redistribute(self, rows: list[list[tuple[Ply, float]]]) -> list[list[Ply]]:
        """Gives `surprise_fraction` of all policy weight to the plies in proportion to weight times surprise."""
        fraction = self._config.selfplay.surprise_fraction
        weights = [ply.policy_weight for row in rows for ply, _ in row]
        shares = [ply.policy_weight * surprise for row in rows for ply, surprise in row]
        scale = sum(weights) / max(sum(shares), 1e-6)

        def weigh(ply: Ply, surprise: float) -> Ply:
            extra = scale * ply.policy_weight * surprise
            return ply.replace(policy_weight=np.float32((1 - fraction) * ply.policy_weight + fraction * extra))

        return [[weigh(*each) for each in row] for row in rows]

    def _sample(self, history: list[Ply], ply: int) -> Sample:
        """Returns the sample of one ply of one game, given all its plies that are known."""
        here = history[ply]

        def ownership() -> np.ndarray:
            end = next((each for each in history[ply:] if each.ended), None)
            owners = end.auxiliary["ownership"] if end is not None else np.zeros_like(here.auxiliary["ownership"])
            return owners if here.state.current_player == 0 else -owners

        target = np.float32(self._return(history, ply))
        return Sample(here.state, here.policy_target, here.policy_weight, target, self._auxiliary(ownership))

    def _return(self, history: list[Ply], ply: int) -> float:
        """Returns the lambda-return of a ply from the perspective of its player to move."""
        here, mixed = history[ply], self._config.selfplay.value_lambda
        if here.ended:
            return float(here.reward)
        if ply + 1 == len(history):
            return float(here.search_value)
        after = history[ply + 1]
        sign = 1 if after.state.current_player == here.state.current_player else -1
        value = (1 - mixed) * after.search_value + mixed * self._return(history, ply + 1)
        return float(here.reward) + sign * self._config.search.discount * value

    def _auxiliary(self, ownership: Any) -> dict[str, np.ndarray]:
        return {"ownership": ownership()} if self._config.network.ownership_head else {}

    def _blank(self, state: Tree) -> Ply:
        """Returns the placeholder of a ply before the run."""
        zero = np.float32(0)
        return Ply(
            state=state,
            action=np.int32(0),
            policy_target=np.zeros(self._rules.num_actions, np.float32),
            is_full=np.bool_(False),
            policy_weight=zero,
            search_value=zero,
            reward=zero,
            discount=zero,
            ended=np.bool_(False),
            truncated=np.bool_(False),
            length=np.int32(0),
            auxiliary=self._auxiliary(lambda: np.zeros_like(self._rules.ownership(state))),
        )


def stack(trees: list[Tree]) -> Tree:
    """Stacks the leaves of equal trees along a new first axis."""
    return jax.tree.map(lambda *leaves: np.stack(leaves), *trees)
