"""Configs that together set every field that a short run can use off its default."""

SIZES = {"width": 8, "num_blocks": 1, "num_heads": 2, "key_size": 3, "mlp_ratio": 1, "value_pools": 3}

# Games of Othello 4x4 last about 12 plies, so some end by the rules and others are truncated. Samples wait for two
# iterations, the replay holds three, and updates begin in the fourth.
GUMBEL = {
    "boards": ["othello:4"],
    "seed": 11,
    "num_iterations": 7,
    "mesh": {"data": 2},
    "network": {**SIZES, "blocks": ["mixing+attention"], "mixing_groups": 4, "ownership_head": True},
    "search": {
        "num_simulations": 6,
        "max_num_considered_actions": 3,
        "value_scale": 0.3,
        "discount": 0.9,
        "min_value_range": 0.4,
        "exploration_plies": 7,
    },
    "selfplay": {
        "num_games": 9,
        "num_groups": 2,
        "plies_per_iteration": 6,
        "opening_plies": 3,
        "first_simulations": 4,
        "full_search_fraction": 0.6,
        "fast_simulations": 3,
        "surprise_fraction": 0.4,
        "max_plies": 12,
        "value_lambda": 0.7,
        "audit_every": 3,
    },
    "replay": {"capacity": 90, "min_size": 50},
    "learner": {
        "batch_size": 8,
        "replay_ratio": 0.5,
        "optimizer": "lamb",
        "learning_rate": 0.03,
        "warmup_steps": 2,
        "final_learning_rate_fraction": 0.3,
        "weight_decay": 0.1,
        "clip_norm": 0.5,
        "value_weight": 0.6,
        "ownership_weight": 0.9,
        "ema_decay": 0.7,
    },
    "evaluation": {
        "every": 3,
        "num_games": 6,
        "num_simulations": 5,
        "value_scale": 0.6,
        "opponents": ["previous", "random"],
    },
    "checkpoint": {"every": 2, "keep": 1, "keep_every": 3},
}
# PUCT, a horizon and an optimizer exclude fields above.
PUCT = {
    "boards": ["hex:3"],
    "num_iterations": 4,
    "network": SIZES,
    "search": {
        "algorithm": "puct",
        "num_simulations": 4,
        "dirichlet_alpha": 1.5,
        "dirichlet_fraction": 0.6,
        "temperature": 0.5,
        "exploration_plies": 3,
    },
    "selfplay": {"num_games": 8, "num_groups": 2, "plies_per_iteration": 4, "horizon": 3},
    "replay": {"capacity": 64, "min_size": 32},
    "learner": {"batch_size": 8, "replay_ratio": 0.5, "optimizer": "sgd", "warmup_steps": 0},
}
# One player, chance, and values outside [-1, 1]; games are truncated, and targets bootstrap from the search.
CHANCE = {
    "boards": ["2048:2"],
    "num_iterations": 4,
    "network": SIZES,
    "search": {"num_simulations": 4, "exploration_plies": 3},
    "selfplay": {
        "num_games": 8,
        "num_groups": 2,
        "plies_per_iteration": 4,
        "opening_plies": 2,
        "max_plies": 8,
        "horizon": 5,
        "value_lambda": 0.6,
    },
    "replay": {"capacity": 64, "min_size": 32},
    "learner": {"batch_size": 8, "replay_ratio": 0.5, "optimizer": "sgd", "warmup_steps": 0},
}
