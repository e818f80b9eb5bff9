"""Each rule of the contract names a game that breaks it."""

import copy
import dataclasses
import runpy

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from alphagat.errors import UserError
from alphagat.games import base, make_game
from alphagat.games.contract import declarations, faults, random_games, rules
from alphagat.games.mnk import MnkState
from alphagat.games.symmetries import Symmetries
from alphagat.graphs.topology import RelationVocabulary

SEED = 0
SOUND, CHANCE, MAP = (make_game(name) for name in ("tic_tac_toe", "2048:2", "tsp:5"))


def after(**changes):
    """Returns a `step` after which some fields are functions of the state before and the state after."""

    def step(self, state, action, key):
        new = SOUND.step(state, action, key)
        return new.replace(**{name: change(state, new) for name, change in changes.items()})

    return step


def at_first(**fields):
    return lambda self, key: SOUND.init(key).replace(**fields)


def drawn_by_numpy():
    """Returns a first state with a stone that depends on no key."""
    global SEED
    SEED += 1
    return SOUND.step(SOUND.init(None), jnp.int32(SEED % 9), None)


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
    (SOUND, "check_attributes", {"num_players": 3}, "num_players is 3; it must be 1 or 2"),
    (SOUND, "check_attributes", {"max_plies": 9.0}, "max_plies is 9.0; it must be a positive integer"),
    (SOUND, "check_attributes", {"num_features": 0}, "num_features is 0; it must be a positive integer"),
    (SOUND, "check_attributes", {"action_names": tuple(range(9))}, "action_names must be a tuple of strings"),
    (SOUND, "check_attributes", {"action_names": ("a\n", *SOUND.action_names[1:])}, "empty or with line breaks"),
    (SOUND, "check_attributes", {"value_support": (1.0, 0.5, 0.0)}, "must be None or a tuple of ascending numbers"),
    (SOUND, "check_attributes", {"value_support": [0.0, 1.0]}, "must be None or a tuple of ascending numbers"),
    (SOUND, "check_attributes", {"history_features": (9,)}, "must be columns of observe, from 0 to 8"),
    (
        SOUND,
        "check_attributes",
        {"topology": topology(action_kinds=np.zeros(3, np.int32))},
        "have 9, 9, 3 entries; they must be equal",
    ),
    (
        SOUND,
        "check_attributes",
        {"topology": topology(vocabulary=RelationVocabulary("mnk", 1, ("loop",), ("cell",)))},
        "the vocabulary has no relation self; add it",
    ),
    (
        SOUND,
        "check_attributes",
        {"topology": topology(vocabulary=RelationVocabulary("mnk", 1, ["self"], ("cell",)))},
        r"relations of the vocabulary is \['self'\]; it must be a tuple of strings",
    ),
    (
        SOUND,
        "check_optional_parts",
        {"truncation_rewards": lambda self, state: jnp.float32(0)},
        r"truncation_rewards: flo",
    ),
    (
        SOUND,
        "check_optional_parts",
        {"ownership": lambda self, state, needed: jnp.zeros(3)},
        r"ownership: float32\[3\]",
    ),
    (SOUND, "check_optional_parts", {"topology": topology(grid_shape=(4, 4))}, "16 cells, more than the 9 nodes"),
    (
        SOUND,
        "check_shapes",
        {"init": at_first(terminated=False)},
        "init returns the Python value False for .terminated",
    ),
    (SOUND, "check_keys", {"init": lambda self, key: drawn_by_numpy()}, "init returns different states for one key"),
    (
        SOUND,
        "check_keys",
        {"step": lambda self, state, action, key: SOUND.step(state, jax.random.randint(key, (), 0, 9), key)},
        "step returns different states for different keys; subclass base.StochasticGame",
    ),
    (
        SOUND,
        "check_rewards",
        {"value_support": (-0.5, 0.5)},
        "rewards add up to -1 to 1, beyond the value_support",
    ),
    (
        SOUND,
        "check_winning_actions",
        {"winning_actions": lambda self, state: jnp.ones(9, bool)},
        "names a legal move that does not win at once",
    ),
    (SOUND, "check_winning_actions", {"winning_actions": lambda self, state: jnp.ones(3, bool)}, r"bool\[3\] instead"),
    (SOUND, "check_drawings", {"render_svg": lambda self, state: None}, "render_svg must return an SVG document"),
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
    (SOUND, "check_edges", {"edges": lambda self, state: jnp.zeros((9, 9, 8))}, "array, but the topology is fixed"),
    (MAP, "check_edges", {"edges": lambda self, state: None}, "array, but the topology is fixed"),
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
    """Applies one rule, after those that games must keep to be played."""
    if hasattr(declarations, rule):
        getattr(declarations, rule)(game)
    else:
        declarations.check_shapes(game)
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
    assert {rule for _, rule, _, _ in CASES} == {rule.__name__ for rule in (*declarations.DECLARATIONS, *rules.RULES)}


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


@pytest.mark.parametrize("name", declarations.ATTRIBUTES[1:])
def test_a_missing_attribute_is_named(name):
    game = copy.copy(SOUND)
    vars(game).pop(name, None)
    game.__class__ = type(
        "Broken", (base.Game,), {each: getattr(type(SOUND), each) for each in base.Game.__abstractmethods__}
    )
    if name != "num_features":
        game.num_features = 9
    with pytest.raises(UserError, match=f"board tic_tac_toe: the game has no {name}; set it in __init__"):
        declarations.check_attributes(game)


@pytest.mark.parametrize("step", ["if state.terminated: pass", "np.any(np.asarray(state.board))"])
def test_an_error_in_the_code_of_a_game_is_one_line(step, tmp_path):
    """It names the line of the game, and what compiled code needs."""
    (tmp_path / "mine.py").write_text(f"import numpy as np\n\ndef step(self, state, action, key):\n    {step}\n")
    game = copy.copy(SOUND)
    game.__class__ = type("Broken", (type(SOUND),), {"step": runpy.run_path(str(tmp_path / "mine.py"))["step"]})
    with pytest.raises(Exception, match="Tracer") as error:
        declarations.check_shapes(game)
    text = faults.describe_fault(game, error.value)
    assert text.startswith("board tic_tac_toe: mine.py:4: Tracer")
    assert text.endswith("use jnp.where instead of if, and jnp instead of np")
    assert "\n" not in text


def test_a_state_without_a_mask_is_named():
    with pytest.raises(NotImplementedError, match="State has no property legal_action_mask; define it"):
        base.State(None, None, None).legal_action_mask  # noqa: B018
