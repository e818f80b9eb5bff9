"""One iteration on one board: self-play, replay and updates in one compiled program over all devices."""

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import stages
from jax.sharding import Mesh

from alphagat.agents.build import make_configured_search
from alphagat.games.states import network_inputs
from alphagat.games.symmetries import permute_actions, permute_edges, permute_nodes, random_symmetries
from alphagat.learner.loss import AuxiliaryLoss, Batch
from alphagat.learner.update import TrainState, make_update, mean_gradients
from alphagat.networks.placement import place_params
from alphagat.replay import Replay, add, sample
from alphagat.runs.metrics import TRAIN
from alphagat.runtime import sharding
from alphagat.search import Search
from alphagat.selfplay.auxiliary_targets import AUXILIARY_TARGETS, AuxiliaryTarget
from alphagat.selfplay.games_in_flight import GamesInFlight, draw_full_searches, make_play
from alphagat.selfplay.ply import Ply
from alphagat.selfplay.targets import value_targets
from alphagat.training.audit import Audit
from alphagat.training.plan import Plan
from alphagat.training.setup import Setup, auxiliary_targets, scales_loss
from alphagat.training.state import BOARD_SPECS, BoardState, RunState, Sample, params_shardings

Metrics = dict[str, jax.Array]
# Reserved numbers for `fold_in`. Groups and iterations fold in their own numbers, and `split` yields the keys of 0, 1,
# and so on; none of these reaches the reserved ones.
NO_GROUP, EVALUATIONS, RETRIES = (2**31 - number for number in (1, 2, 3))


def make_iteration(setup: Setup, mesh: Mesh) -> stages.Wrapped:
    """Returns the jitted `program(train, board, root_key, iteration) -> (train, board, iteration, metrics, audit)`.

    It runs one iteration on the board of `setup` and donates every argument except the key; `run_iteration` calls it.
    Self-play communicates between devices only for the sums at its end, so that no device waits for another's trees. In
    the updates, only the gradients cross devices.
    """
    sharded, replicated = sharding.SHARDED, sharding.REPLICATED
    play = sharding.over_data(
        functools.partial(play_and_store, setup),
        mesh,
        (replicated, BOARD_SPECS, sharded, replicated),
        (BOARD_SPECS, replicated, sharded),
    )

    def iterate(train: TrainState, board: BoardState, root_key: jax.Array, iteration: jax.Array):
        group_keys, is_full = draw_keys(setup, root_key, iteration, board.groups)
        board, selfplay_metrics, audit = play(train.acting, board, group_keys[:, 0], is_full)
        train, train_metrics = update_parameters(setup, mesh, train, board, group_keys[:, 1])
        metrics = selfplay_metrics | train_metrics
        return train, board.replace(iteration=board.iteration + 1), iteration + 1, metrics, audit

    return jax.jit(iterate, donate_argnums=(0, 1, 3))


def draw_keys(
    setup: Setup, root_key: jax.Array, iteration: jax.Array, groups: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Returns the keys of an iteration, `[G, 2]` (self-play, updates), and the plies that use full search.

    The seed splits into the keys of the parameters, the first games and the run. A group's key of the first games is
    folded from its number and splits into one per game. An iteration folds its number into the key of the run, and a
    group its number into the result, which splits into self-play and updates:

    - Self-play splits its key into one per ply, and that into search, moves and new games; the last two split into one
      per game.
    - Update k of the iteration folds k into the group's key and splits it into samples and symmetries.
    - The plies of full search are drawn once for all groups, from `NO_GROUP` folded into the iteration's key.

    Matches fold `EVALUATIONS` and the number of the iteration into the key of the seed. A retry after non-finite
    updates folds `RETRIES` and its number into the key of the run.
    """
    key = jax.random.fold_in(jax.random.wrap_key_data(root_key), iteration)
    group_keys = jax.vmap(lambda group: jax.random.split(jax.random.fold_in(key, group)))(groups)
    plan = setup.plan
    is_full = draw_full_searches(jax.random.fold_in(key, NO_GROUP), plan.plies_per_iteration, plan.full_plies)
    return group_keys, is_full


def run_iteration(program: Callable, state: RunState, number: int = 0) -> tuple[RunState, Metrics, Audit]:
    """Runs the program of board `number`; returns the run state, the metrics, and the audit for an `Auditor`."""
    train, board, iteration, metrics, audit = program(*program_arguments(state, number))
    boards = (*state.boards[:number], board, *state.boards[number + 1 :])
    return state.replace(train=train, boards=boards, iteration=iteration), metrics, audit


def program_arguments(state: RunState, number: int = 0) -> tuple[TrainState, BoardState, jax.Array, jax.Array]:
    """Returns the arguments of `make_iteration`'s program."""
    return state.train, state.boards[number], state.key, state.iteration


def play_and_store(
    setup: Setup, params: Any, board: BoardState, keys: jax.Array, is_full: jax.Array
) -> tuple[BoardState, Metrics, Audit]:
    """Plays the iteration's plies in the groups of one device and moves samples with final targets to the replay.

    The metrics are summed over all devices. The audit covers one game of this device, a different one each iteration.
    """
    games, samples, sums, audit = play_iteration(setup, params, board.games, board.iteration, keys, is_full)
    is_final = are_final(setup.plan, board.iteration)
    return board.replace(games=games, replay=store(board.replay, samples, is_final)), sums, audit


def are_final(plan: Plan, iteration: Any) -> Any:
    """Returns whether the samples of an iteration were played; a run starts with blank ones."""
    return iteration >= plan.num_waiting // plan.plies_per_iteration


def store(replay: Replay, samples: Sample, is_final: jax.Array) -> Replay:
    """Adds each group's samples, `[G, M]` before each shape, to its ring if `is_final`."""
    return jax.vmap(add, in_axes=(0, 0, None))(replay, samples, is_final)


def play_iteration(
    setup: Setup, params: Any, games: GamesInFlight, iteration: jax.Array, keys: jax.Array, is_full: jax.Array
) -> tuple[GamesInFlight, Sample, Metrics, Audit]:
    """Plays the iteration's plies in the groups of one device; returns games, samples, metrics summed over all devices,
    and an audit.
    """
    plan, selfplay = setup.plan, setup.config.selfplay
    auxiliary = auxiliary_targets(setup.config)
    params = place_params(setup.network, params)  # once, not at each evaluation
    make_selfplay_search = functools.partial(make_configured_search, setup.game, setup.evaluate, setup.config)
    fast_search = make_selfplay_search(explore=False, num_simulations=selfplay.fast_simulations)
    searches = [make_selfplay_search(explore=True, num_simulations=number) for number in plan.simulations]
    part = plan.part_of(iteration)
    play = make_play(
        setup.game,
        switch(part, searches),
        num_plies=plan.plies_per_iteration,
        max_plies=plan.max_plies,
        opening_plies=selfplay.opening_plies,
        fast_search=fast_search if plan.has_fast_plies else None,
        surprise_fraction=selfplay.surprise_fraction,
        discount=setup.config.search.discount,
        auxiliary=auxiliary,
    )
    # All groups share one draw: a choice per group would run both searches.
    games, history = over_groups(lambda group: play(params, *group, is_full), (keys, games))
    final = jax.vmap(lambda plies: final_samples(plies, plan.plies_per_iteration, selfplay.value_lambda, auxiliary))(
        history
    )
    played = jax.tree.map(lambda x: x[:, plan.num_waiting :], history)
    slot = iteration // max(selfplay.audit_every, 1) % plan.group_games  # the audits of a board see every slot in turn
    seen, values, others = jax.tree.map(lambda x: x[0, :, slot], (history, final.value_target, final.auxiliary))
    audit = Audit(seen, values, others, iteration)
    simulations = jnp.where(played.is_full, jnp.asarray(plan.simulations)[part], selfplay.fast_simulations)
    sums = selfplay_sums(played) | {"simulations": simulations.sum(dtype=jnp.float32)}
    sums = jax.lax.psum(sums, sharding.DATA)
    samples = jax.vmap(lambda samples, plies: trained_samples(samples, plies.is_full, plan.full_plies))(final, history)
    return games, samples, sums, jax.tree.map(lambda x: x[None], audit)


def over_groups(function: Callable[[Any], Any], groups: Any) -> Any:
    """Applies a function to the groups `[G, ...]` of a device: at once, or on a CPU in turn, because the search trees
    of one group fit into the cache.
    """
    if jax.default_backend() == "cpu":
        return jax.lax.map(function, groups)
    return jax.vmap(function)(groups)


def switch(number: jax.Array, searches: Sequence[Search]) -> Search:
    """Returns the search that runs `searches[number]`, all in one program."""
    if len(searches) == 1:
        return searches[0]
    return functools.partial(jax.lax.switch, number, searches)


def final_samples(history: Ply, num_plies: int, value_lambda: float, auxiliary: Iterable[AuxiliaryTarget]) -> Sample:
    """Returns the samples of the oldest `num_plies` plies, `[num_plies, N]` before each shape."""
    targets = value_targets(history, value_lambda)
    others = {target.name: target.targets(history) for target in auxiliary}
    samples = Sample(history.state, history.policy_target, history.policy_weight, targets, others)
    return jax.tree.map(lambda x: x[:num_plies], samples)


def trained_samples(samples: Sample, is_full: jax.Array, full_plies: int) -> Sample:
    """Returns the samples `[T, N]` of the plies of an iteration that were searched in full, `[full_plies * N]`.

    `is_full` is `[P + T, N]`, and the same for all games.
    """
    num_plies = len(samples.value_target)
    if full_plies < num_plies:
        (plies,) = jnp.nonzero(is_full[:num_plies, 0], size=full_plies)
        samples = jax.tree.map(lambda x: x[plies], samples)
    return jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), samples)


def selfplay_sums(played: Ply) -> Metrics:
    """Returns sums over the plies of one device; the host turns them into means and rates."""
    ended = played.ended
    log_target = jnp.log(jnp.maximum(played.policy_target, 1e-12))
    return {
        "games": ended.sum(dtype=jnp.float32),
        "truncated": played.truncated.sum(dtype=jnp.float32),
        "game_plies": jnp.where(ended, played.length, 0).sum(dtype=jnp.float32),
        "drawn": (ended & (played.reward == 0)).sum(dtype=jnp.float32),
        "full_plies": played.is_full.sum(dtype=jnp.float32),
        "searches_not_finite": (~jnp.isfinite(played.search_value)).sum(dtype=jnp.float32),
        "target_entropy": -(jnp.where(played.is_full[..., None], played.policy_target, 0.0) * log_target).sum(),
    }


def update_parameters(
    setup: Setup, mesh: Mesh, train: TrainState, board: BoardState, keys: jax.Array
) -> tuple[TrainState, Metrics]:
    """Runs the iteration's updates once the replay holds its minimum; the metrics are NaN before."""
    all_updates = make_updates(setup, mesh, make_find_gradients(setup, mesh))

    def batches(index: jax.Array) -> tuple[BoardState, jax.Array]:
        return board, jax.vmap(jax.random.fold_in, in_axes=(0, None))(keys, index)

    @jax.jit  # traced once for both branches
    def some_updates(train: TrainState) -> tuple[TrainState, Metrics]:
        return all_updates(train, batches)

    def no_update(train: TrainState) -> tuple[TrainState, Metrics]:
        metrics = jax.eval_shape(some_updates, train)[1]
        return train, jax.tree.map(lambda x: jnp.full(x.shape, jnp.nan), metrics)

    # All rings have the same size, so all devices take the same branch; the mean over devices requires it.
    is_enough = board.iteration >= setup.plan.first_update_iteration
    train, metrics = jax.lax.cond(is_enough, some_updates, no_update, train)
    return train, learner_metrics(setup, train, metrics)


def make_updates(
    setup: Setup, mesh: Mesh, find_gradients: Callable[..., tuple[Any, dict]]
) -> Callable[[TrainState, Callable[[jax.Array], tuple]], tuple[TrainState, Metrics]]:
    """Returns `all_updates(train, batches)`, which runs an iteration's updates and averages their metrics. Update k,
    counted from 0, uses `find_gradients(params, loss_scale, *batches(k))`.
    """
    update = make_update(
        find_gradients,
        setup.optimizer,
        ema_decay=setup.config.learner.ema_decay,
        scale_loss=scales_loss(setup.config),
        as_one_vector=setup.config.mesh.ravels_gradients,
    )

    def all_updates(train: TrainState, batches: Callable[[jax.Array], tuple]) -> tuple[TrainState, Metrics]:
        places = params_shardings(mesh, train, fsdp=setup.config.mesh.fsdp)

        def one_update(train: TrainState, index: jax.Array):
            train, metrics = update(train, *batches(index))
            return jax.lax.with_sharding_constraint(train, places), metrics

        train, metrics = jax.lax.scan(one_update, train, jnp.arange(setup.plan.updates_per_iteration))
        # Without the constraint, the compiler may split the result of the loop in another way.
        return jax.lax.with_sharding_constraint(train, places), mean_of_applied(metrics)

    return all_updates


def mean_of_applied(metrics: Metrics) -> Metrics:
    """Averages metrics, `[K]` each, over the updates that were not skipped; NaN if all were."""
    is_applied = jnp.isfinite(metrics["grad_norm"])
    return {name: values.mean(where=is_applied) for name, values in metrics.items()}


def learner_metrics(setup: Setup, train: TrainState, metrics: Metrics) -> Metrics:
    """Returns the metrics of an iteration's updates and the learner's own, under their full names."""
    metrics = metrics | {
        "learning_rate": jnp.asarray(setup.schedule(jnp.maximum(train.step - 1, 0)), jnp.float32),
        "skipped": train.health.skipped.astype(jnp.float32),
        "skipped_in_a_row": train.health.skipped_in_a_row.astype(jnp.float32),
    }
    if scales_loss(setup.config):
        metrics["loss_scale"] = train.health.loss_scale
    return {f"{TRAIN}{name}": value for name, value in metrics.items()}


def make_find_gradients(setup: Setup, mesh: Mesh) -> Callable[..., tuple[Any, dict]]:
    """Returns `find_gradients(params, loss_scale, board, keys)`, the mean gradients over a batch. Each device draws its
    share of the batch.
    """
    return gradients_of(setup, mesh, functools.partial(draw_batch, setup), (BOARD_SPECS, sharding.SHARDED))


def gradients_of(
    setup: Setup, mesh: Mesh, batch_of: Callable[..., Batch], specs: tuple
) -> Callable[..., tuple[Any, dict]]:
    """Returns `find_gradients(params, loss_scale, *source)`, the mean gradients over the batches of all devices.

    Each device makes its batch with `batch_of(*source)`; `specs` says how the source is sharded.
    """
    learner, targets = setup.config.learner, auxiliary_targets(setup.config)
    gradients = functools.partial(
        mean_gradients,
        network=setup.network,
        value_weight=learner.value_weight,
        auxiliary=[AuxiliaryLoss(each.name, weight, each.loss) for each, weight in targets.items()],
        axis_name=sharding.DATA,
        num_micro_batches=setup.num_micro_batches(mesh),
        as_one_vector=setup.config.mesh.ravels_gradients,
    )

    def find_gradients(params: Any, loss_scale: jax.Array, *source: Any):
        return gradients(params, loss_scale, batch_of(*source))

    replicated = sharding.REPLICATED
    return sharding.over_data(find_gradients, mesh, (replicated, replicated, *specs), replicated)


def draw_batch(setup: Setup, board: BoardState, keys: jax.Array) -> Batch:
    """Draws one device's share of a batch: equally many examples per group, each in a random symmetry."""
    size = setup.plan.group_batch_size
    keys = jax.vmap(jax.random.split)(keys)  # [G, 2]
    samples = jax.vmap(lambda replay, key: sample(replay, key, size))(board.replay, keys[:, 0])
    return make_batch(setup, samples, keys[:, 1])


def make_batch(setup: Setup, samples: Sample, keys: jax.Array) -> Batch:
    """Makes a batch from one device's samples, `[G, b]` before each shape. Each group's key draws the symmetries of its
    examples.
    """
    game = setup.game
    symmetry = jax.vmap(lambda key: random_symmetries(key, setup.plan.group_batch_size, game.symmetries))(keys)
    samples, symmetry = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), (samples, symmetry))
    auxiliary = {
        name: AUXILIARY_TARGETS[name].permute(target.astype(jnp.float32), symmetry, game.symmetries)
        for name, target in samples.auxiliary.items()
    }
    nodes, edges = network_inputs(game, samples.state)
    return Batch(
        nodes=permute_nodes(nodes, symmetry, game.symmetries),
        legal_action_mask=permute_actions(samples.state.legal_action_mask, symmetry, game.symmetries),
        policy_target=permute_actions(samples.policy_target, symmetry, game.symmetries),
        policy_weight=samples.policy_weight,
        value_target=samples.value_target,
        auxiliary=auxiliary,
        edges=permute_edges(edges, symmetry, game.symmetries),
    )
