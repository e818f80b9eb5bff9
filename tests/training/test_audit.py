"""The audit replays one game per iteration: it accepts correct games and names errors."""

import functools

import jax
import numpy as np
import pytest

from alphagat.errors import AuditError
from alphagat.runtime import sharding
from alphagat.training.audit import Auditor
from alphagat.training.iteration import make_iteration, run_iteration
from alphagat.training.setup import make_setups
from alphagat.training.state import init_state
from tests.training.tiny import run_of, tiny_config

# All runs of tests/training audit Hex, and tests/test_configs.py the other families.
CUT = "mnk:4x4x4"  # has truncations, and bootstrapped targets
PAID = "othello:4"  # has truncations with a result
OWNED = "go:5"  # also trains ownership
RUNS = {
    OWNED: {"plies_per_iteration": 8},
    CUT: {"max_plies": 6, "plies_per_iteration": 4, "value_lambda": 0.7},
    PAID: {"max_plies": 6, "plies_per_iteration": 4},
}
ITERATIONS = 8


@functools.cache
def audits_of(board: str):
    """Returns an auditor, the audits of `ITERATIONS` iterations, and the slots of their games in the first group."""
    config = tiny_config()
    config.boards, config.num_iterations, config.mesh.data = (board,), 40, 2
    config.search.discount = 0.9
    config.network.ownership_head = board == OWNED
    config.selfplay.audit_every = 2
    for name, value in RUNS[board].items():
        setattr(config.selfplay, name, value)
    (setup,), mesh = make_setups(config), sharding.make_mesh(2)
    state, program, audits, slots = init_state(run_of(setup, mesh)), make_iteration(setup, mesh), [], []
    for _ in range(ITERATIONS):
        state, _, audit = run_iteration(program, state)
        audits.append(audit)
        seen = np.asarray(audit.history.policy_target)[0, setup.plan.plies_per_iteration :]
        waiting = np.asarray(state.boards[0].games.waiting.policy_target)[0]  # [P, N, A] of the first group
        slots.append([slot for slot in range(setup.plan.group_games) if np.array_equal(seen, waiting[:, slot])])
    return Auditor(setup), audits, slots


@pytest.mark.parametrize("board", RUNS)
def test_accepts_a_correct_game(board: str):
    auditor, audits, _ = audits_of(board)
    for audit in audits:
        auditor.check(audit)
    assert any(np.asarray(audit.history.ended).any() for audit in audits)
    cut = np.stack([audit.history.truncated for audit in audits])
    assert cut.any() == (board != OWNED)
    assert (cut & (np.stack([audit.history.reward for audit in audits]) != 0)).any() == (board == PAID)


@pytest.mark.parametrize("board", RUNS)
def test_one_program_replays_the_games_of_all_iterations(board: str, caplog):
    """On a GPU, an operation outside it would wait for the iteration that runs there."""
    auditor, audits, _ = audits_of(board)
    auditor.check(audits[0])
    with jax.transfer_guard_host_to_device("disallow"), jax.log_compiles():
        for audit in audits:
            auditor.check(audit)
    assert not caplog.records


@pytest.mark.parametrize("board", RUNS)
def test_the_audited_iterations_see_every_game_of_a_group_in_turn(board: str):
    """The auditor checks every second iteration."""
    _, _, slots = audits_of(board)
    assert slots[1::2] == [[0], [1], [0], [1]]


def wrong_at(index, change):
    """Returns a function that modifies element `index` of the first device's array."""

    def apply(array):
        copy = np.array(array)
        copy[(0, *index)] = change(copy[(0, *index)])
        return jax.device_put(copy, array.sharding)

    return apply


@pytest.fixture(scope="module")
def cut_audit():
    auditor, audits, _ = audits_of(CUT)
    return auditor, audits[-1]


WRONGS = {
    "action": (
        lambda h, at: h.replace(action=wrong_at((at,), lambda _: 6)(h.action)),
        "action 6 is not legal",
    ),  # taken
    "policy": (
        lambda h, at: h.replace(policy_target=wrong_at((at, 0), lambda x: x + 0.1)(h.policy_target)),
        "the policy target sums to 1.1",
    ),
    "no policy": (
        lambda h, at: h.replace(policy_target=wrong_at((at, 0), lambda x: np.nan)(h.policy_target)),
        "the policy target sums to nan",
    ),
    "no reward": (lambda h, at: h.replace(reward=wrong_at((at,), lambda x: np.nan)(h.reward)), "the reward is nan"),
    "end": (lambda h, at: h.replace(ended=wrong_at((at,), lambda x: ~x)(h.ended)), "ended by the rules"),
    "cut early": (
        lambda h, at: h.replace(
            **{name: wrong_at((at,), lambda x: True)(getattr(h, name)) for name in ("ended", "truncated")}
        ),
        "truncated after . plies, with a limit of 6",
    ),
    "cut late": (
        lambda h, at: h.replace(length=wrong_at((at,), lambda x: 6)(h.length)),
        "not truncated after 6 plies, with a limit of 6",
    ),
    "reward": (lambda h, at: h.replace(reward=wrong_at((at,), lambda x: x - 0.5)(h.reward)), "the reward is"),
    "position": (
        lambda h, at: h.replace(
            state=h.state.replace(board=wrong_at((at + 1, 0), lambda x: (x + 1) % 3)(h.state.board))
        ),
        "the next position is not what the move leads to",
    ),
}


@pytest.mark.parametrize("name", WRONGS)
def test_names_an_error_in_a_ply(cut_audit, name: str):
    auditor, audit = cut_audit
    change, message = WRONGS[name]
    auditor.check(audit)
    with pytest.raises(AuditError, match=f"^{CUT}, ply .* of a game: .*{message}"):
        auditor.check(audit.replace(history=change(audit.history, 1)))


@pytest.mark.parametrize("how", ["turned", "of the next ply", "halved", "missing"])
def test_names_a_wrong_value_target(cut_audit, how: str):
    auditor, audit = cut_audit
    targets = np.asarray(audit.value_targets)
    wrong = {
        "turned": -targets,
        "of the next ply": np.roll(targets, 1, axis=1),
        "halved": targets / 2,
        "missing": targets * np.nan,
    }[how]
    with pytest.raises(AuditError, match="the value target is"):
        auditor.check(audit.replace(value_targets=jax.device_put(wrong, audit.value_targets.sharding)))


@pytest.fixture(scope="module")
def owned_audit():
    auditor, audits, _ = audits_of(OWNED)
    return auditor, audits[-1]


@pytest.mark.parametrize("how", ["turned", "of the next ply", "of another board"])
def test_names_a_wrong_ownership_target(owned_audit, how: str):
    auditor, audit = owned_audit
    targets = np.asarray(audit.auxiliary["ownership"])
    assert targets.shape[2] == 26
    assert targets.any()
    if how == "of another board":
        recorded = audit.history.auxiliary["ownership"]
        wrong = np.where(np.arange(26) == 0, -np.asarray(recorded), np.asarray(recorded))
        wrong = jax.device_put(wrong, recorded.sharding)
        audit = audit.replace(history=audit.history.replace(auxiliary={"ownership": wrong}))
        message = "the recorded ownership is not who holds each node"
    else:
        wrong = {"turned": -targets, "of the next ply": np.roll(targets, 1, axis=1)}[how]
        wrong = jax.device_put(wrong, audit.auxiliary["ownership"].sharding)
        audit = audit.replace(auxiliary={"ownership": wrong})
        message = "the ownership target is not who holds each node"
    with pytest.raises(AuditError, match=message):
        auditor.check(audit)
