"""Each rule of the contract names a game that breaks it."""

import copy
import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from alphagat.errors import UserError
from alphagat.games import make_game
from alphagat.games.base import Symmetries
from alphagat.games.contract import random_games, rules
from alphagat.games.mnk import MnkState

SOUND, CHANCE, MAP = (make_game(name) for name in ("tic_tac_toe", "2048:2", "tsp:5"))


def after(**changes):
    """Returns a `step` after which some fields are functions of the state before and the state after."""

    def step(self, state, action, key):
        new = SOUND.step(state, action, key)
        return new.replace(**{name: change(state, new) for name, change in changes.items()})

    return step


def at_first(**fields):
    return lambda self, key: SOUND.init(key).replace(**fields)


def observed(change):
    return lambda self, state: change(SOUND.observe(state), state)


def with_mask(mask):
    """Returns an `init` whose states have another mask of legal actions."""

    class Masked(MnkState):
        @property
        def legal_action_mask(self):
            return mask(self)

    def init(self, key):
        state = SOUND.init(key)
        return Masked(**{field.name: getattr(state, field.name) for field in dataclasses.fields(state)})

    return init


def topology(**changes):
    return dataclasses.replace(SOUND.topology, **changes)


def symmetries(nodes=SOUND.symmetries.node_permutations, actions=SOUND.symmetries.action_permutations):
    return Symmetries(nodes, actions)


def edges(change):
    return lambda self, state: change(MAP.edges(state), state)


def exchanged(rows):
    return np.asarray(rows)[[1, 0, *range(2, len(rows))]]


TURNED = SOUND.symmetries.node_permutations
CASES = [
    (SOUND, "check_shapes", {"init": at_first(rewards=jnp.zeros(2, int))}, r"step for .rewards: float32\[2\] instead"),
    (SOUND, "check_shapes", {"init": at_first(rewards=jnp.zeros(3))}, r"float32\[2\] instead of float32\[3\]"),
    (
        SOUND,
        "check_shapes",
        {"step": after(terminated=lambda old, new: jnp.zeros(2, bool))},
        r"bool\[2\] instead of bool",
    ),
    (SOUND, "check_shapes", {"step": lambda self, state, action, key: (state,)}, "step must return the same class"),
    (
        SOUND,
        "check_shapes",
        {"observe": observed(lambda x, _: x.astype(int))},
        r"observe: int32\[9, 9\] instead of float",
    ),
    (SOUND, "check_shapes", {"observe": observed(lambda x, _: x[:, 1:])}, r"\[9, 8\] instead of float32\[9, 9\]"),
    (SOUND, "check_shapes", {"init": with_mask(lambda state: state.board[:8] == 0)}, r"legal_action_mask: bool\[8\]"),
    (SOUND, "check_shapes", {"init": with_mask(lambda state: state.board)}, r"legal_action_mask: int8\[9\] instead"),
    (
        SOUND,
        "check_batches",
        {"init": with_mask(lambda state: jnp.where(state.terminated, False, state.board == 0))},
        "legal_action_mask fails on a batch .* from the end",
    ),
    (SOUND, "check_ends", {"max_plies": 4}, "a game goes on after max_plies=4 moves; raise max_plies"),
    (SOUND, "check_ends", {"init": at_first(terminated=jnp.bool_(True))}, "init returns a terminated state"),
    (SOUND, "check_ends", {"step": after(terminated=lambda old, new: old.terminated)}, "without legal actions is not"),
    (SOUND, "check_ends", {"init": with_mask(lambda state: state.board == 0)}, "must be all False once terminated"),
    (SOUND, "check_ends", {"max_legal_actions": 8}, "max_legal_actions=8 must be at least 9"),
    (SOUND, "check_ends", {"max_legal_actions": 10}, "at most 9, the number of actions"),
    (
        SOUND,
        "check_terminal_states",
        {"step": after(rewards=lambda old, new: jnp.where(new.terminated, jnp.array([1.0, -1.0]), 0))},
        "step pays rewards in a terminated state",
    ),
    (
        SOUND,
        "check_terminal_states",
        {"step": after(current_player=lambda old, new: jnp.int8(1) - old.current_player)},
        "step changes .current_player of a terminated state",
    ),
    (
        SOUND,
        "check_rewards",
        {"step": after(rewards=lambda old, new: abs(new.rewards))},
        "add up to 0 over both players",
    ),
    (SOUND, "check_rewards", {"step": after(rewards=lambda old, new: 2 * new.rewards)}, "add up to 2; scale them to"),
    (SOUND, "check_rewards", {"init": at_first(current_player=jnp.int8(2))}, "current_player must be from 0 to 1"),
    (
        CHANCE,
        "check_chance",
        {"chance_log_probs": lambda self, state: CHANCE.chance_log_probs(state) + 1},
        "add up to 2.718.* instead of 1",
    ),
    (
        CHANCE,
        "check_chance",
        {"resolve": lambda self, state, outcome: CHANCE.resolve(state, outcome).replace(rewards=jnp.ones(1))},
        "resolve must keep the rewards of move",
    ),
    (
        CHANCE,
        "check_chance",
        {"step": lambda self, state, action, key: CHANCE.step(state, action, jax.random.key(0))},
        "the share of a chance outcome differs",
    ),
    (
        CHANCE,
        "check_chance",
        {"step": lambda self, state, action, key: CHANCE.step(state, action, key).replace(board=2 * state.board)},
        "step reaches positions that no chance outcome reaches",
    ),
    (CHANCE, "check_chance", {"num_chance_outcomes": 9}, "must have num_chance_outcomes"),
    (
        CHANCE,
        "check_chance",
        {"resolve": lambda self, state, outcome: CHANCE.resolve(state, outcome // 2 * 2)},
        "two chance outcomes lead to the same features",
    ),
    (SOUND, "check_features", {"observe": observed(lambda x, _: x.at[0, 0].set(jnp.nan))}, "not finite"),
    (SOUND, "check_features", {"observe": observed(lambda x, _: 0 * x)}, "the same before and after move 1"),
    (SOUND, "check_topology", {"action_names": SOUND.action_names[:1] * 9}, "must be 9 different names"),
    (SOUND, "check_topology", {"topology": topology(node_kinds=np.full(9, 2, np.int32))}, "node_kinds .* from 0 to 1"),
    (SOUND, "check_topology", {"topology": topology(relations=0 * SOUND.topology.relations)}, "the relation self"),
    (SOUND, "check_topology", {"topology": topology(action_senders=np.zeros(9, np.int32))}, "without an edge"),
    (
        SOUND,
        "check_topology",
        {"topology": topology(action_senders=np.zeros(9, np.int32), action_receivers=np.zeros(9, np.int32))},
        "two actions have the same nodes",
    ),
    (SOUND, "check_edges", {"edges": lambda self, state: jnp.zeros((9, 9, 8))}, "edges_vary disagree"),
    (MAP, "check_edges", {"edges": lambda self, state: None}, "edges_vary disagree"),
    (MAP, "check_edges", {"edges": edges(lambda x, _: x[..., 1:])}, r"\[5, 5, 4\] instead of float32\[5, 5, 5\]"),
    (MAP, "check_edges", {"edges": edges(lambda x, _: -x)}, "finite and at least 0"),
    (MAP, "check_edges", {"edges": edges(lambda x, _: x.at[3, 3].set(0))}, "no edge to itself"),
    (MAP, "check_edges", {"edges": edges(lambda x, _: 0 * x + jnp.eye(5)[..., None])}, "the same for all positions"),
    (SOUND, "check_symmetries", {"symmetries": symmetries(nodes=TURNED * 0)}, "a row of node_permutations is no"),
    (SOUND, "check_symmetries", {"symmetries": symmetries(nodes=TURNED.astype(float))}, "float.* instead of int32"),
    (SOUND, "check_symmetries", {"symmetries": symmetries(nodes=exchanged(TURNED))}, "first row .* the identity"),
    (SOUND, "check_symmetries", {"symmetries": symmetries(nodes=TURNED[[0] * 8])}, "two rows of node_permutations"),
    (
        SOUND,
        "check_symmetries",
        {"symmetries": symmetries(actions=np.tile(np.arange(9, dtype=np.int32), (8, 1)))},
        "symmetry 1 does not move actions with their nodes",
    ),
    (
        SOUND,
        "check_symmetries",
        {
            "symmetries": symmetries(*[np.stack([np.arange(9), [1, 0, *range(2, 9)]]).astype(np.int32)] * 2),
        },
        "symmetry 1 (does not keep the edges|mixes edges)",
    ),
    (
        SOUND,
        "check_symmetric_play",
        {"observe": observed(lambda x, state: x.at[0, 0].add((state.board != 0).sum()))},
        "lead to features that are not symmetric",
    ),
    (
        SOUND,
        "check_symmetric_play",
        {"step": after(rewards=lambda old, new: jnp.where(new.board[0] == 1, 0, new.rewards))},
        "lead to other results",
    ),
    (SOUND, "check_drawings", {"render": lambda self, state: "won" * bool(state.terminated)}, "the same after a move"),
    (SOUND, "check_drawings", {"render": lambda self, state: SOUND.render(state) + "\n"}, "ends with a space"),
    (SOUND, "check_drawings", {"render": lambda self, state: f"{state.board} won"}, "whether a game has ended"),
    (SOUND, "check_drawings", {"render_svg": lambda self, state: "<svg/>"}, "must return an SVG document"),
]


def check(game, rule):
    rules.check_shapes(game)
    if rule != "check_shapes":
        getattr(rules, rule)(random_games.play(game, 32, 0))


@pytest.mark.parametrize(("sound", "rule", "changes", "says"), CASES)
def test_a_broken_game_is_named(sound, rule, changes, says):
    game = copy.copy(sound)
    game.name = f"broken by {rule} {says}"  # unique, since programs are cached by name
    game.__class__ = type("Broken", (type(sound),), changes)
    for name in set(changes) & set(vars(game)):
        del vars(game)[name]  # the class has it
    with pytest.raises(UserError, match=says) as error:
        check(game, rule)
    assert str(error.value).startswith(f"board {game.name}: ")
    assert "\n" not in str(error.value)


def test_every_rule_is_broken_by_a_game():
    assert {rule for _, rule, _, _ in CASES} == {rule.__name__ for rule in (rules.check_shapes, *rules.RULES)}


def test_random_moves_are_legal_and_all_are_played():
    games = random_games.play(SOUND, 500, 1)
    running = ~games.terminated[:-1]
    assert np.take_along_axis(games.legal[:-1], games.actions[..., None], axis=-1)[running].all()
    first = np.bincount(games.actions[0], minlength=9)
    assert (abs(first - 500 / 9) < 4 * np.sqrt(500 / 9)).all()
    assert (games.features[0] == np.asarray(SOUND.observe(games.state(0)))).all()
    assert games.length(0) == int(games.terminated[:, 0].argmax())


def test_games_differ_with_the_seed():
    one, other = (random_games.play(SOUND, 20, seed).actions for seed in (0, 1))
    assert (one != other).any()
