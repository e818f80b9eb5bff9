"""Every field of the config has a test that fails if the program ignores the field."""

import ast
from pathlib import Path

from alphagat.config import Config
from alphagat.config_fields import fields
from alphagat.config_validation import from_dict
from tests.training.reference.wiring_configs import GUMBEL, PUCT

TESTS = Path(__file__).parents[1]
HERE = "training/test_wiring.py"
RUN, PUCT_RUN = f"{HERE}::test_a_run_equals_the_reference", f"{HERE}::test_a_shorter_run_equals_the_reference"
MATCHES = f"{HERE}::test_matches_are_played_by_the_average_as_configured"
NETWORK = f"{HERE}::test_the_network_has_the_configured_fields"
KEPT = f"{HERE}::test_checkpoints_are_kept_as_configured_and_hold_the_average_for_players"
ORDER = f"{HERE}::test_weights_order_the_boards"
AUDITS = f"{HERE}::test_audits_are_as_frequent_as_configured"
DEVICES = f"{HERE}::test_games_are_split_over_the_configured_devices"
# The test that fails if the program ignores a field.
NOTICED_BY = {
    "boards": RUN,
    "board_weights": ORDER,
    "final_board_weights": ORDER,
    "init_from": RUN,
    "seed": RUN,
    "num_iterations": RUN,
    "mesh.data": DEVICES,
    "mesh.model": f"{HERE}::test_the_mesh_has_the_configured_axes",
    "mesh.stage": f"{HERE}::test_stages_cut_the_network",
    "mesh.memory_gb": "training/test_compilation.py::test_fewest_micro_batches_that_fit",
    "mesh.fsdp": "training/test_parallel.py::test_parameters_are_sharded",
    "mesh.actors": "training/test_actor_learner.py::test_arrays_reside_on_the_devices_that_use_them",
    "network.name": NETWORK,
    "network.backend": NETWORK,
    "network.width": RUN,
    "network.num_blocks": RUN,
    "network.blocks": RUN,
    "network.num_heads": RUN,
    "network.key_size": RUN,
    "network.mixing_groups": RUN,
    "network.mlp_ratio": RUN,
    "network.value_pools": RUN,
    "network.ownership_head": RUN,
    "network.precision": NETWORK,
    "network.remat": NETWORK,
    "search.algorithm": PUCT_RUN,
    "search.num_simulations": RUN,
    "search.max_num_considered_actions": RUN,
    "search.value_scale": RUN,
    "search.discount": RUN,
    "search.min_value_range": RUN,
    "search.dirichlet_alpha": PUCT_RUN,
    "search.dirichlet_fraction": PUCT_RUN,
    "search.temperature": PUCT_RUN,
    "search.exploration_plies": PUCT_RUN,
    "selfplay.num_games": RUN,
    "selfplay.num_groups": RUN,
    "selfplay.plies_per_iteration": RUN,
    "selfplay.opening_plies": RUN,
    "selfplay.first_simulations": RUN,
    "selfplay.full_search_fraction": RUN,
    "selfplay.fast_simulations": RUN,
    "selfplay.surprise_fraction": RUN,
    "selfplay.max_plies": RUN,
    "selfplay.value_lambda": RUN,
    "selfplay.audit_every": AUDITS,
    "selfplay.horizon": PUCT_RUN,
    "replay.capacity": RUN,
    "replay.min_size": RUN,
    "trackers": "training/test_loop.py::test_resume_is_bit_identical",
    "pretrain.games": "training/pretraining/test_program.py::test_it_fits_the_recorded_moves",
    "pretrain.holdout": "training/pretraining/test_program.py::test_the_configured_fraction_is_held_out",
    "learner.batch_size": RUN,
    "learner.replay_ratio": RUN,
    "learner.num_micro_batches": "training/test_compilation.py::test_micro_batches_save_memory",
    "learner.optimizer": PUCT_RUN,
    "learner.learning_rate": RUN,
    "learner.warmup_steps": RUN,
    "learner.final_learning_rate_fraction": RUN,
    "learner.weight_decay": RUN,
    "learner.clip_norm": RUN,
    "learner.value_weight": RUN,
    "learner.ownership_weight": RUN,
    "learner.actor_sync_every": (
        "training/test_actor_learner.py::test_parameters_are_synchronized_and_their_age_is_reported"
    ),
    "learner.max_skipped": "training/test_loop.py::test_nonfinite_updates_roll_the_run_back",
    "learner.ema_decay": RUN,
    "evaluation.every": MATCHES,
    "evaluation.num_games": MATCHES,
    "evaluation.num_simulations": MATCHES,
    "evaluation.value_scale": MATCHES,
    "evaluation.oracle_positions": "training/test_evaluation.py::test_the_network_is_compared_with_perfect_play",
    "evaluation.opponents": MATCHES,
    "checkpoint.every": KEPT,
    "checkpoint.keep": KEPT,
    "checkpoint.keep_every": KEPT,
}


def test_every_field_has_a_test_that_notices_it():
    assert NOTICED_BY.keys() == {field.path for field in fields(Config())}
    for place in set(NOTICED_BY.values()):
        file, _, name = place.partition("::")
        functions = [
            node.name for node in ast.parse((TESTS / file).read_text()).body if isinstance(node, ast.FunctionDef)
        ]
        assert name in functions, place


def test_the_runs_change_every_field_that_they_notice():
    gumbel, puct = from_dict(GUMBEL | {"init_from": "a file"}), from_dict(PUCT)
    configs = {RUN: gumbel, MATCHES: gumbel, KEPT: gumbel, AUDITS: gumbel, DEVICES: gumbel, PUCT_RUN: puct}
    defaults = {field.path: field.value for field in fields(Config())}
    values = {test: {field.path: field.value for field in fields(config)} for test, config in configs.items()}
    for path, test in NOTICED_BY.items():
        assert test not in values or values[test][path] != defaults[path], path
