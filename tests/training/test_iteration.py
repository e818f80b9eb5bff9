"""One iteration: no host round trip, and the same games on one and on eight devices."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.extend.core import jaxprs_in_params

from alphagat.runtime import sharding
from alphagat.training.iteration import make_iteration, mean_of_applied, program_arguments, run_iteration
from alphagat.training.state import init_state, state_shardings
from tests.training.tiny import run_of, tiny_setup

DEVICES = (1, 8)


@pytest.fixture(scope="module")
def setup():
    return tiny_setup()


@pytest.fixture(scope="module")
def iterations(setup):
    return {size: make_iteration(setup, sharding.make_mesh(size)) for size in DEVICES}


@pytest.fixture(scope="module")
def lowered(setup, iterations):
    return iterations[8].lower(*program_arguments(init_state(run_of(setup, sharding.make_mesh(8)))))


@pytest.fixture(scope="module")
def histories(setup, iterations):
    """Returns, by number of devices, the host states and metrics after each of six iterations."""
    found = {}
    for size, iterate in iterations.items():
        state = init_state(run_of(setup, sharding.make_mesh(size)))
        found[size] = [(jax.device_get(state), None)]
        for _ in range(6):
            state, metrics, _ = run_iteration(iterate, state)
            found[size].append((jax.device_get(state), jax.device_get(metrics)))
    return found


def test_runs_under_a_transfer_guard(setup, iterations):
    """No host-to-device transfer occurs, and the arguments are donated."""
    state = init_state(run_of(setup, sharding.make_mesh(8)))
    state, *_ = run_iteration(iterations[8], state)
    with jax.transfer_guard("disallow"):
        after, metrics, _ = run_iteration(iterations[8], state)
        jax.block_until_ready((after, metrics))
    assert all(leaf.is_deleted() for leaf in jax.tree.leaves((state.train, state.boards, state.iteration)))
    assert jax.tree.map(lambda x: x.sharding, after) == state_shardings(sharding.make_mesh(8), after)
    with pytest.raises(Exception, match="isallowed"), jax.transfer_guard("disallow"):
        jnp.zeros(2) + np.ones(2)


def test_needs_no_host_callback(lowered):
    def with_callback(x):
        return jax.pure_callback(np.sin, x, x)

    assert "callback" in jax.jit(with_callback).lower(jnp.zeros(2)).as_text()
    assert "callback" not in lowered.as_text()


def test_selfplay_has_no_collective_within_a_search(setup, iterations, lowered):
    """The only collective is the sum over devices, outside every search."""
    text = lowered.as_text()
    collectives = ("all_gather", "all_to_all", "collective_permute", "reduce_scatter")
    assert not [name for name in collectives if f"stablehlo.{name}" in text]
    assert "stablehlo.all_reduce" in text
    program = jax.make_jaxpr(iterations[8])(*program_arguments(init_state(run_of(setup, sharding.make_mesh(8))))).jaxpr
    searches = inside_whiles(program)
    assert searches
    assert not any(name.startswith("psum") for names in searches for name in names)


def inside_whiles(jaxpr) -> list[set[str]]:
    """Returns the names of all primitives within each `while` of a program; only the searches are `while` loops."""
    found = []

    def names(inner) -> set[str]:
        every = set()
        for equation in inner.eqns:
            below = [names(each) for each in jaxprs_in_params(equation.params)]
            every |= {equation.primitive.name}.union(*below)
            if equation.primitive.name == "while":
                found.append(set().union(*below))
        return every

    names(jaxpr)
    return found


def test_counters_and_metrics(setup, histories):
    plan = setup.plan
    for number, (state, metrics) in enumerate(histories[8][1:], start=1):
        assert int(state.iteration) == number
        updates = max(number - plan.first_update_iteration, 0) * plan.updates_per_iteration
        assert int(state.train.step) == updates
        assert metrics["full_plies"] == plan.frames_per_iteration
        assert (
            0 < metrics["games"] <= 2 * plan.num_games
        )  # at most two games end in four plies, because each has at least three
        assert metrics["game_plies"] >= 3 * metrics["games"]
        assert metrics["truncated"] == metrics["drawn"] == 0
        assert np.isfinite(metrics["train/policy_loss"]) == (updates > 0)


def test_updates_start_once_the_replay_holds_its_minimum(setup, histories):
    plan, min_size = setup.plan, setup.config.replay.min_size
    sizes = [int(state.boards[0].replay.size.sum()) for state, _ in histories[8]]
    assert sizes == [min(max(n - 1, 0) * plan.frames_per_iteration, 256) for n in range(7)]
    first = next(n for n, size in enumerate(sizes) if size >= min_size)
    steps = [int(state.train.step) for state, _ in histories[8]]
    assert next(n for n, step in enumerate(steps) if step) == first == plan.first_update_iteration + 1


def test_only_updates_change_the_parameters(histories):
    params = [state.train.params for state, _ in histories[8]]

    def equal(one, other):
        return all(map(np.array_equal, jax.tree.leaves(one), jax.tree.leaves(other)))

    assert equal(params[0], params[1])
    assert not equal(params[1], params[2])


def test_one_and_eight_devices_play_the_same_games(histories, record_property):
    """Records the fraction of equal moves in the first iteration; rounding may flip near-ties."""
    one, eight = (histories[size][1][0] for size in DEVICES)
    same = (one.boards[0].games.waiting.state.cells == eight.boards[0].games.waiting.state.cells).all(-1)  # [G, P, N]
    record_property("share of equal positions", float(same.mean()))
    assert same.mean() > 0.95
    for name in ("policy_target", "search_value"):
        np.testing.assert_allclose(
            getattr(one.boards[0].games.waiting, name)[same],
            getattr(eight.boards[0].games.waiting, name)[same],
            atol=1e-5,
        )


def test_logits_are_the_same_on_one_and_eight_devices(setup, histories):
    """Compares per-device batches of 64 and 8 positions to 1e-5."""
    state = histories[8][-1][0]
    positions = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:])[:64], state.boards[0].replay.samples.state)
    found = []
    for size in DEVICES:
        mesh = sharding.make_mesh(size)
        evaluate = jax.shard_map(
            setup.evaluate, mesh=mesh, in_specs=(sharding.REPLICATED, sharding.SHARDED), out_specs=sharding.SHARDED
        )
        found.append(jax.jit(evaluate)(state.train.params, positions))
    for one, eight in zip(*found, strict=True):
        assert np.ptp(one) > 1e-3
        np.testing.assert_allclose(one, eight, atol=1e-5)


def test_replay_holds_valid_positions(setup, histories):
    """In every sample, the policy target is legal and the value target is an outcome."""
    samples = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), histories[8][-1][0].boards[0].replay.samples)
    legal = np.asarray(samples.state.legal_action_mask)
    assert (samples.policy_target[~legal] == 0).all()
    np.testing.assert_allclose(samples.policy_target.sum(1), 1, rtol=1e-5)
    assert set(samples.value_target.tolist()) == {-1.0, 1.0}
    assert not samples.state.terminated.any()


@pytest.mark.parametrize(
    ("norms", "norm", "loss"), [((1, np.inf, 2), 1.5, 3.0), ((np.nan, np.inf, np.nan), None, None)]
)
def test_metrics_are_means_over_the_updates_that_were_applied(norms, norm, loss):
    metrics = mean_of_applied({"grad_norm": jnp.float32(norms), "policy_loss": jnp.float32([2, 9, 4])})
    found = [None if np.isnan(metrics[name]) else float(metrics[name]) for name in ("grad_norm", "policy_loss")]
    assert found == [norm, loss]
