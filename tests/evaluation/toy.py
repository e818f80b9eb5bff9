"""A game with extra moves, which the boards lack, and its exact values."""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from alphagat.games import base
from alphagat.games.symmetries import Symmetries


class PileState(base.State):
    """`pile` `[]` int32: what is left."""

    pile: jax.Array

    @property
    def legal_action_mask(self):
        return jnp.stack([self.pile >= take for take in (1, 2, 3)], axis=-1) & ~self.terminated[..., None]


class PileGame(base.Game):
    """Take 1 or 3 and pass the turn, or take 2 and move again; who takes the last wins."""

    num_actions = 3
    symmetries = Symmetries(np.zeros((1, 1), int), np.arange(3)[None])

    def __init__(self, size: int, max_plies: int = 0):
        self.name, self.size, self.max_plies = f"pile:{size}:{max_plies}", size, max_plies or size

    def init(self, key):
        return PileState(jnp.int8(0), jnp.zeros(2), jnp.bool_(False), jnp.int32(self.size))

    def step(self, state, action, key):
        pile = jnp.where(state.terminated, state.pile, state.pile - jnp.array([1, 2, 3])[action])
        won = (pile == 0) & ~state.terminated
        pay = jnp.where(jnp.arange(2) == state.current_player, 1.0, -1.0)
        again = (action == 1) | state.terminated
        return PileState(
            current_player=jnp.where(again, state.current_player, 1 - state.current_player),
            rewards=jnp.where(won, pay, 0.0),
            terminated=state.terminated | won,
            pile=pile,
        )

    def observe(self, state):
        return state.pile[None, None].astype(jnp.float32)

    def render(self, state):
        return str(state.pile)

    def render_svg(self, state):
        return "<svg/>"

    def truncation_rewards(self, state):
        return jnp.array([-1.0, 1.0])


class RandomPileGame(PileGame):
    """The pile has 5 to `size` at first."""

    def init(self, key):
        pile = jax.random.randint(key, (), 5, self.size + 1, jnp.int32)
        return PileState(jnp.int8(0), jnp.zeros(2), jnp.bool_(False), pile)


def take_one_or_three(params, key, states):
    """Takes 1 or 3 at random, or 1 if 3 is too many; an `act` of `Player`."""
    takes_three = jax.random.bernoulli(key, shape=states.terminated.shape) & states.legal_action_mask[:, 2]
    return jnp.where(takes_three, 2, 0)


@functools.cache
def pile_values(pile: int) -> dict[int, int]:
    """Returns the value of each legal action for the player to move."""

    def after(action: int) -> int:
        left = pile - (1, 2, 3)[action]
        if left == 0:
            return 1
        best = max(pile_values(left).values())
        return best if action == 1 else -best

    return {action: after(action) for action in range(3) if pile > action}


def piles(sizes) -> PileState:
    """Returns a batch of positions with player 0 to move."""
    sizes = jnp.asarray(sizes, jnp.int32)
    num = len(sizes)
    return PileState(jnp.zeros(num, jnp.int8), jnp.zeros((num, 2)), jnp.zeros(num, bool), sizes)
