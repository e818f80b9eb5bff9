"""The config of a run, as nested dataclasses; files in `configs/` set only what differs from the defaults."""

import dataclasses

from alphagat.bounds import MAX_BATCH, MAX_GAMES, MAX_ITERATIONS, MAX_PLIES, MAX_SEED, MAX_SIMULATIONS
from alphagat.config_fields import setting
from alphagat.network_traits import AUTO, BACKENDS, BLOCK_KINDS, NETWORK_TRAITS
from alphagat.opponents import PREVIOUS, USAGES

MAX_DEVICES = 4_096
MAX_WIDTH = 65_536
MAX_POSITIONS = 10**9  # in a replay
TRACKERS = "mlflow", "wandb"
MAX_FACTOR = 1_000_000  # of weights and scales, so that float32 arithmetic does not overflow


@dataclasses.dataclass(slots=True, kw_only=True)
class MeshConfig:
    """The device mesh. Without accelerators, it consists of CPU devices."""

    data: int = setting(
        0,
        "devices along the data axis; 0: all accelerators, or if there are none, as many CPU devices as cores, rounded "
        "down to a power of two, at most 8",
        at_least=0,
        at_most=MAX_DEVICES,
    )
    model: int = setting(
        1,
        "devices that split each network's heads and MLPs; divides num_heads, mixing_groups and the number of devices; "
        "gat only",
        at_least=1,
        at_most=MAX_DEVICES,
    )
    stage: int = setting(
        1,
        "pipeline stages that split the blocks of a network too large for one device; gat only",
        at_least=1,
        at_most=MAX_DEVICES,
    )
    memory_gb: float = setting(
        0.0, "memory limit of each device in GB; 0: the driver's limit", at_least=0, at_most=MAX_FACTOR
    )
    fsdp: bool = setting(
        False, "shard parameters and optimizer state along the data axis, and gather them for each use"
    )
    actors: int = setting(
        0,
        "devices along the data axis that only play, while the others only learn; 0: every device does both",
        at_least=0,
        at_most=MAX_DEVICES,
    )

    @property
    def num_devices(self) -> int:
        """Number of devices requested; 0: all."""
        return self.data * self.model * self.stage

    @property
    def splits_network(self) -> bool:
        """Whether several devices share a network."""
        return self.model * self.stage > 1

    @property
    def ravels_gradients(self) -> bool:
        """Whether gradients are averaged and clipped as one vector; a split network would have to gather them first."""
        return not self.splits_network


@dataclasses.dataclass(slots=True, kw_only=True)
class NetworkConfig:
    """The network."""

    name: str = setting("gat", "network architecture", choices=tuple(NETWORK_TRAITS))
    backend: str = setting(
        AUTO,
        "messages as masked matrix products (dense), as segment operations (jraph), or, except for gradients, all "
        "blocks as one GPU kernel (fused); auto: fused on an H100 or H200 if a check at the start passes, else dense; "
        "gat only",
        choices=BACKENDS,
    )
    width: int = setting(64, "features per node (gat) or channels (resnet)", at_least=1, at_most=MAX_WIDTH)
    num_blocks: int = setting(4, "number of blocks", at_least=1, at_most=512)
    blocks: tuple[str, ...] = setting(
        ("mixing", "mixing", "mixing", "mixing+attention"),
        "kinds of blocks, repeated so that the last block has the last kind; mixing is a signed sum along typed edges; "
        "gat only",
        choices=BLOCK_KINDS,
    )
    num_heads: int = setting(1, "attention heads per block; divides width; gat only", at_least=1, at_most=MAX_WIDTH)
    key_size: int = setting(
        16, "size of a query and of a key, per attention head; gat only", at_least=1, at_most=MAX_WIDTH
    )
    mixing_groups: int = setting(
        8,
        "groups of features that mix with the same weights; divides width; gat only",
        at_least=1,
        at_most=MAX_WIDTH,
    )
    mlp_ratio: int = setting(2, "hidden width of a block's MLP divided by width; gat only", at_least=1, at_most=64)
    value_pools: int = setting(
        4, "weighted means over the nodes from which the value is read; gat only", at_least=1, at_most=MAX_WIDTH
    )
    ownership_head: bool = setting(
        False, "also predict the final owner of each node, in games that define one (Go, Othello); gat only"
    )
    precision: str = setting(
        "float32", "dtype of the blocks; parameters stay float32", choices=("float32", "bfloat16", "float16")
    )
    remat: bool = setting(False, "save memory by recomputing activations of the blocks in the backward pass")

    @property
    def auxiliary_heads(self) -> tuple[str, ...]:
        """The names of the auxiliary heads that are on."""
        return tuple(name for name in self.known_auxiliary_heads() if getattr(self, f"{name}_head"))

    @classmethod
    def known_auxiliary_heads(cls) -> tuple[str, ...]:
        """The names of all auxiliary heads: `ownership` for `ownership_head`."""
        switches = [field.name for field in dataclasses.fields(cls) if field.name.endswith("_head")]
        return tuple(name.removesuffix("_head") for name in switches)


@dataclasses.dataclass(slots=True, kw_only=True)
class SearchConfig:
    """The tree search that improves the network's policy."""

    algorithm: str = setting("gumbel", "search algorithm", choices=("gumbel", "puct"))
    num_simulations: int = setting(32, "simulations per move", at_least=1, at_most=MAX_SIMULATIONS)
    max_num_considered_actions: int = setting(
        16, "actions in the sequential halving at the root; gumbel only", at_least=1, at_most=4_096
    )
    value_scale: float = setting(
        0.5, "weight of the completed Q-values relative to the prior logits; gumbel only", above=0, at_most=MAX_FACTOR
    )
    discount: float = setting(
        1.0,
        "discount per move; below 1, quick wins and slow losses are worth more; 1 in games with chance",
        above=0,
        at_most=1,
    )
    min_value_range: float = setting(
        1.0,
        "the Q-values of a node are divided by their range, or by this if the range is smaller; gumbel only",
        at_least=0,
        at_most=MAX_FACTOR,
    )
    dirichlet_alpha: float = setting(
        0.3, "concentration of the Dirichlet noise at the root; puct only", at_least=1e-6, at_most=MAX_FACTOR
    )
    dirichlet_fraction: float = setting(
        0.25, "fraction of Dirichlet noise in the root prior; puct only", at_least=0, at_most=1
    )
    temperature: float = setting(
        1.0,
        "sampling temperature in the first exploration_plies plies, 0 afterwards; puct only",
        at_least=0,
        at_most=1_000,
    )
    exploration_plies: int = setting(
        30,
        "number of plies, random openings included, in which self-play explores: by Gumbel noise (gumbel) or by "
        "sampling (puct); 0: none",
        at_least=0,
        at_most=MAX_PLIES,
    )


@dataclasses.dataclass(slots=True, kw_only=True)
class SelfplayConfig:
    """Self-play."""

    num_games: int = setting(
        128,
        "games in flight per board, over all devices; rounded down to a multiple of num_groups",
        at_least=1,
        at_most=MAX_BATCH,
    )
    num_groups: int = setting(
        8,
        "groups of games, each with one search key and one share of the replay; a multiple of the number of devices",
        at_least=1,
        at_most=65_536,
    )
    plies_per_iteration: int = setting(16, "moves per game and iteration", at_least=1, at_most=MAX_PLIES)
    opening_plies: int = setting(
        0, "each game starts with 0 to this many random moves, but none that ends it", at_least=0, at_most=MAX_PLIES
    )
    first_simulations: int = setting(
        0,
        "simulations per move at the start of the run; doubled at equal intervals up to search.num_simulations; 0: "
        "search.num_simulations throughout",
        at_least=0,
        at_most=MAX_SIMULATIONS,
    )
    full_search_fraction: float = setting(
        1.0,
        "fraction of an iteration's plies searched in full, at least one; the others use fast_simulations, without "
        "exploration, and are not trained on",
        above=0,
        at_most=1,
    )
    fast_simulations: int = setting(
        8, "simulations of a ply that is not searched in full", at_least=1, at_most=MAX_SIMULATIONS
    )
    surprise_fraction: float = setting(
        0.0,
        "fraction of the policy loss weight distributed in proportion to policy surprise",
        at_least=0,
        at_most=1,
    )
    max_plies: int = setting(
        0,
        "plies after which a game is truncated, with the result that the game defines; 0: the game's own bound",
        at_least=0,
        at_most=MAX_PLIES,
    )
    value_lambda: float = setting(
        1.0,
        "lambda of the value target; 1: the outcome; below 1: the lambda-return over search values",
        at_least=0,
        at_most=1,
    )
    audit_every: int = setting(
        1,
        "iterations between audits, which check one game per process against the rules; 0: never",
        at_least=0,
        at_most=MAX_ITERATIONS,
    )
    horizon: int = setting(
        0,
        "plies that a position waits for its value target; 0: the longest game, so that the outcome is known",
        at_least=0,
        at_most=MAX_PLIES,
    )


@dataclasses.dataclass(slots=True, kw_only=True)
class ReplayConfig:
    """The replay buffer, in device memory."""

    capacity: int = setting(
        65_536,
        "positions per board, over all devices; rounded up to whole iterations",
        at_least=1,
        at_most=MAX_POSITIONS,
    )
    min_size: int = setting(4_096, "positions of a board before its first update", at_least=1, at_most=MAX_POSITIONS)


@dataclasses.dataclass(slots=True, kw_only=True)
class PretrainConfig:
    """Supervised learning from recorded games, instead of self-play."""

    games: tuple[str, ...] = setting(
        (), "SGF or PGN files, folders of them, or run folders with a replay; empty: self-play"
    )
    holdout: float = setting(0.05, "fraction of the games held out for validation", at_least=0, below=1)


@dataclasses.dataclass(slots=True, kw_only=True)
class LearnerConfig:
    """The optimization of the network."""

    batch_size: int = setting(
        512, "positions per update, over all devices; a multiple of selfplay.num_groups", at_least=1, at_most=MAX_BATCH
    )
    replay_ratio: float = setting(
        4.0,
        "average number of times that a position is trained on; sets the updates per iteration",
        above=0,
        at_most=10_000,
    )
    num_micro_batches: int = setting(
        0,
        "micro-batches per device and update; 0: as many as memory requires and, on a CPU, fit into a core's cache",
        at_least=0,
        at_most=MAX_BATCH,
    )
    optimizer: str = setting("muon", "optimizer", choices=("muon", "lamb", "lars", "adamw", "sgd"))
    learning_rate: float = setting(0.02, "peak learning rate", above=0, at_most=1_000)
    warmup_steps: int = setting(50, "updates of linear warm-up, before a cosine decay", at_least=0, at_most=10**9)
    final_learning_rate_fraction: float = setting(
        0.05, "final learning rate divided by the peak", at_least=0, at_most=1
    )
    weight_decay: float = setting(1e-4, "weight decay of the weight matrices", at_least=0, at_most=1_000)
    clip_norm: float = setting(1.0, "maximum global norm of the gradients", above=0, at_most=10**9)
    value_weight: float = setting(
        1.0, "weight of the value loss relative to the policy loss", at_least=0, at_most=MAX_FACTOR
    )
    ownership_weight: float = setting(
        0.5,
        "weight of the ownership loss relative to the policy loss; needs network.ownership_head",
        at_least=0,
        at_most=MAX_FACTOR,
    )
    actor_sync_every: int = setting(
        1,
        "updates between transfers of the parameters to the actors; needs mesh.actors",
        at_least=1,
        at_most=MAX_ITERATIONS,
    )
    max_skipped: int = setting(
        20,
        "consecutive non-finite updates before the run returns to its last checkpoint",
        at_least=1,
        at_most=MAX_ITERATIONS,
    )
    ema_decay: float = setting(
        0.0, "EMA decay of the parameters that play; 0 disables the average", at_least=0, at_most=0.99999
    )


@dataclasses.dataclass(slots=True, kw_only=True)
class EvaluationConfig:
    """Matches during training. Each opening is played with both colours."""

    every: int = setting(
        20,
        "iterations between evaluations, and one at the end of the run; 0: never",
        at_least=0,
        at_most=MAX_ITERATIONS,
    )
    num_games: int = setting(200, "games per opponent; even", at_least=2, at_most=MAX_GAMES)
    num_simulations: int = setting(
        32, "simulations per move of the evaluated player", at_least=1, at_most=MAX_SIMULATIONS
    )
    value_scale: float = setting(
        1.0,
        "replaces search.value_scale where the search does not explore (matches, fast searches); gumbel only",
        above=0,
        at_most=MAX_FACTOR,
    )
    oracle_positions: int = setting(
        0, "random positions on which the player is compared with perfect play; 0: none", at_least=0, at_most=MAX_GAMES
    )
    opponents: tuple[str, ...] = setting(
        ("random", "mcts:100", "previous"),
        f"any of {USAGES}, {PREVIOUS} (the parameters of the last evaluation)",
    )


@dataclasses.dataclass(slots=True, kw_only=True)
class CheckpointConfig:
    """Checkpoints."""

    every: int = setting(
        20, "iterations between checkpoints, and one at the end of the run", at_least=1, at_most=MAX_ITERATIONS
    )
    keep: int = setting(3, "number of latest checkpoints to keep", at_least=1, at_most=MAX_ITERATIONS)
    keep_every: int = setting(
        0,
        "also save, and always keep, a checkpoint every this many iterations; 0: none",
        at_least=0,
        at_most=MAX_ITERATIONS,
    )


@dataclasses.dataclass(slots=True, kw_only=True)
class Config:
    """One training run."""

    boards: tuple[str, ...] = setting(
        ("hex:5",), "boards of one game family; each has its own games and replay, and all train one network"
    )
    board_weights: tuple[float, ...] = setting(
        (), "share of iterations of each board; empty: equal", at_least=0, at_most=MAX_FACTOR
    )
    final_board_weights: tuple[float, ...] = setting(
        (), "shares at the end of the run, approached linearly; empty: constant shares", at_least=0, at_most=MAX_FACTOR
    )
    init_from: str = setting(
        "",
        "trained network to start from, of any board of the family: a run folder, a checkpoint, an exported file, or "
        "the name of a shipped network; empty: random weights",
    )
    seed: int = setting(0, "random seed", at_least=0, at_most=MAX_SEED)
    num_iterations: int = setting(100, "iterations of the run", at_least=1, at_most=MAX_ITERATIONS)
    trackers: tuple[str, ...] = setting(
        (),
        "experiment trackers that also receive the metrics; each needs the extra of its name",
        choices=TRACKERS,
    )
    mesh: MeshConfig = dataclasses.field(default_factory=MeshConfig)
    network: NetworkConfig = dataclasses.field(default_factory=NetworkConfig)
    search: SearchConfig = dataclasses.field(default_factory=SearchConfig)
    selfplay: SelfplayConfig = dataclasses.field(default_factory=SelfplayConfig)
    replay: ReplayConfig = dataclasses.field(default_factory=ReplayConfig)
    pretrain: PretrainConfig = dataclasses.field(default_factory=PretrainConfig)
    learner: LearnerConfig = dataclasses.field(default_factory=LearnerConfig)
    evaluation: EvaluationConfig = dataclasses.field(default_factory=EvaluationConfig)
    checkpoint: CheckpointConfig = dataclasses.field(default_factory=CheckpointConfig)
