"""A game whose positions identify their game and ply, and trivial searches."""

import jax
import jax.numpy as jnp
import numpy as np

from alphagat.games import base
from alphagat.games.symmetries import Symmetries
from alphagat.graphs.topology import RelationVocabulary, topology_from_matrix
from alphagat.search import SearchOutput


class MarkedState(base.State):
    """`serial` `[]` uint32 identifies the game; `ply` and `length` `[]` int32."""

    serial: jax.Array
    ply: jax.Array
    length: jax.Array

    @property
    def legal_action_mask(self):
        return jnp.stack([~self.terminated, ~self.terminated], axis=-1)


class MarkedGame(base.Game):
    """Has a random length; each player makes `turn` moves in a row; action 1 pays the mover 0.25 immediately.

    The mover of the last ply wins where the serial number is even.
    """

    num_actions = 2
    num_features = 2
    topology = topology_from_matrix(
        RelationVocabulary("marked", version=1, relations=("self",), node_kinds=("node",)),
        np.zeros((1, 1), np.int32),
        np.zeros(1, np.int32),
        (np.zeros(2, np.int32), np.zeros(2, np.int32)),
        (1, 1),
    )
    symmetries = Symmetries(np.zeros((1, 1), np.int32), np.arange(2, dtype=np.int32)[None])

    def __init__(self, lengths=(2, 20), turn=2, num_players=2):
        self.name = f"marked:{lengths}:{turn}:{num_players}"
        self.lengths, self.turn, self.num_players, self.max_plies = lengths, turn, num_players, max(lengths)

    def init(self, key):
        serial_key, length_key = jax.random.split(key)
        return MarkedState(
            current_player=jnp.int8(0),
            rewards=jnp.zeros(self.num_players),
            terminated=jnp.bool_(False),
            serial=jax.random.bits(serial_key, (), jnp.uint32),
            ply=jnp.int32(0),
            length=jax.random.choice(length_key, jnp.array(self.lengths, jnp.int32)),
        )

    def step(self, state, action, key):
        running = ~state.terminated
        ply = state.ply + running
        over = ply >= state.length
        pay = jnp.where(state.serial % 2 == 0, 1.0, -1.0) * over + 0.25 * (action == 1)
        mover = jnp.arange(self.num_players) == state.current_player
        return state.replace(
            current_player=jnp.where(over, state.current_player, (ply // self.turn) % self.num_players).astype(
                jnp.int8
            ),
            rewards=jnp.where(mover, pay, -pay) * running,
            terminated=over,
            ply=ply,
        )

    def observe(self, state):
        return jnp.stack([state.ply / 20, state.length / 20])[None].astype(jnp.float32)

    def render(self, state):
        return f"{state.serial}: {state.ply}"

    def render_svg(self, state):
        return "<svg/>"

    def truncation_rewards(self, state):
        return jnp.array([0.5, -0.5])


def random_search(params, key, states, plies):
    """Plays at random and evaluates every position as 0.3."""
    legal = states.legal_action_mask
    action = jax.random.categorical(key, jnp.where(legal, 0.0, -jnp.inf)).astype(jnp.int32)
    return SearchOutput(action, legal / legal.sum(axis=-1, keepdims=True), jnp.full(legal.shape[0], 0.3))
