"""Everything a run can be told, as nested dataclasses; `configs/*.py` state only what differs."""

import dataclasses


@dataclasses.dataclass(slots=True, kw_only=True)
class MeshConfig:
    """Devices. Without accelerators, that many CPU devices are made."""

    data: int = 0  # devices along the data axis; 0: every accelerator, or 8 CPU devices where there is none
    model: int = 1  # devices that share each network's heads and MLPs; divides num_heads, and the devices
    stage: int = 1  # groups of devices through which the blocks of a network too large for one are spread; gat only
    memory_gb: float = 0.0  # of each device, that programs may take; 0: what the driver says
    fsdp: bool = False  # parameters and optimizer rest in slices along the data axis, gathered for use
    actors: int = 0  # of the devices along `data`, those that only play; the others only learn; 0: each does both

    @property
    def num_devices(self) -> int:
        """How many devices are asked for; 0: all."""
        return self.data * self.model * self.stage


@dataclasses.dataclass(slots=True, kw_only=True)
class NetworkConfig:
    """The network that reads a position."""

    name: str = "gat"  # gat or resnet
    backend: str = "dense"  # gat only: dense (masked matrix products) or jraph (segment operations)
    width: int = 64
    num_blocks: int = 4
    num_heads: int = 4  # gat only; divides width
    mlp_ratio: int = 2  # gat only; hidden width of a block's MLP over width
    ownership_head: bool = (
        False  # gat only; also predicts who holds each node in the end, where a game tells (Go, Othello)
    )
    precision: str = "float32"  # what blocks compute in: float32, bfloat16 or float16; parameters stay float32
    remat: bool = False  # the backward pass computes blocks again instead of keeping what is inside them

    @property
    def auxiliary_heads(self) -> tuple[str, ...]:
        """The names of the auxiliary heads that are on: `ownership` for `ownership_head`."""
        switches = [field.name for field in dataclasses.fields(self) if field.name.endswith("_head")]
        return tuple(name.removesuffix("_head") for name in switches if getattr(self, name))


@dataclasses.dataclass(slots=True, kw_only=True)
class SearchConfig:
    """The tree search that improves the network's policy."""

    algorithm: str = "gumbel"  # gumbel or puct
    num_simulations: int = 32
    max_num_considered_actions: int = 16  # gumbel: actions that take part in the sequential halving at the root
    value_scale: float = 0.1  # gumbel: weight of completed Q-values against the prior logits
    discount: float = 1.0  # of a value per move, without chance; below 1, quick wins and slow losses are worth more
    rescale_values: bool = True  # gumbel: stretch each node's Q-values to [0, 1] first; weak values then teach faster
    dirichlet_alpha: float = 0.3  # puct: concentration of the root noise
    dirichlet_fraction: float = 0.25  # puct: share of the root noise
    temperature: float = 1.0  # puct: in the first `temperature_plies` plies of a game, then 0
    temperature_plies: int = 15


@dataclasses.dataclass(slots=True, kw_only=True)
class SelfplayConfig:
    """How games are made."""

    num_games: int = 128  # games in flight per board, over all devices; rounded down to a multiple of num_groups
    num_groups: int = 8  # games with one search key and one share of the replay; a multiple of the devices
    plies_per_iteration: int = 16  # moves that every game makes per iteration
    opening_plies: int = 0  # a game starts after 0 to this many uniformly random moves
    full_search_fraction: float = 1.0  # below 1: other plies get `fast_simulations`, and teach the value only
    fast_simulations: int = 8  # of a ply that is not searched in full
    surprise_fraction: float = 0.0  # of the policy loss, given to plies by how far the search moved their policy
    max_plies: int = 0  # a longer game is cut, with the result that the game names; 0: the game's own bound
    value_lambda: float = 1.0  # 1: the outcome; below: the lambda-return over the search values
    audit_every: int = 1  # iterations; one game per process is then checked on the host by the rules; 0: never
    horizon: int = 0  # plies that a position waits for its target; 0: the longest game, so that the outcome is known


@dataclasses.dataclass(slots=True, kw_only=True)
class ReplayConfig:
    """The positions kept for training, on the devices."""

    capacity: int = 65_536  # positions per board, over all devices; rounded up to whole iterations
    min_size: int = 4_096  # positions of a board before its first update


@dataclasses.dataclass(slots=True, kw_only=True)
class PretrainConfig:
    """Recorded games to learn from in place of self-play."""

    games: tuple[str, ...] = ()  # SGF or PGN files, folders of them, or run folders with a replay; empty: self-play
    holdout: float = 0.05  # share of the games that only measures what the others taught


@dataclasses.dataclass(slots=True, kw_only=True)
class LearnerConfig:
    """How parameters are updated."""

    batch_size: int = 512  # positions per update, over all devices; a multiple of selfplay.num_groups
    replay_ratio: float = 4.0  # times that a position is trained on, on average; sets the updates per iteration
    num_micro_batches: int = 1  # parts in which a device computes its share of a batch, to save memory; 0: as it takes
    optimizer: str = "lamb"  # lamb, lars, adamw or sgd
    learning_rate: float = 5e-3
    warmup_steps: int = 50  # updates; then a cosine down to final_learning_rate_fraction
    final_learning_rate_fraction: float = 0.05
    weight_decay: float = 1e-4
    clip_norm: float = 1.0
    value_weight: float = 1.0  # of the value loss against the policy loss
    ownership_weight: float = 0.5  # of the ownership loss against the policy loss, with network.ownership_head
    actor_sync_every: int = 1  # updates after which the actors, where some devices only play, get new parameters
    max_skipped: int = 20  # updates in a row that are not finite, before the run goes back to its last checkpoint
    ema_decay: float = 0.0  # above 0: a moving average of the parameters plays; its own weight per update


@dataclasses.dataclass(slots=True, kw_only=True)
class EvaluationConfig:
    """Matches during training. Each opening is played with both colours."""

    every: int = 20  # iterations; also at the end; 0: never
    num_games: int = 200  # per opponent; even
    num_simulations: int = 32  # of the evaluated player
    value_scale: float = 1.0  # gumbel: as search.value_scale, for players that play to win and do not explore
    oracle_positions: int = 0  # random positions where the player is compared with perfect play; 0: none
    opponents: tuple[str, ...] = ("random", "mcts:100", "previous")  # previous: the parameters of the last evaluation


@dataclasses.dataclass(slots=True, kw_only=True)
class CheckpointConfig:
    """What is kept on disk."""

    every: int = 20  # iterations; also at the end
    keep: int = 3  # the latest so many
    keep_every: int = 0  # and each whose iteration is a multiple of this, for ever; 0: none


@dataclasses.dataclass(slots=True, kw_only=True)
class Config:
    """One training run."""

    boards: tuple[str, ...] = ("hex:5",)  # of one family; each has its own games and replay, all train one network
    board_weights: tuple[float, ...] = ()  # share of the iterations that each board gets; empty: equal
    final_board_weights: tuple[float, ...] = ()  # the shares move linearly to these; empty: they stay
    init_from: str = ""  # a run folder or file whose weights this run starts from, of any board of the family
    seed: int = 0
    num_iterations: int = 100
    mesh: MeshConfig = dataclasses.field(default_factory=MeshConfig)
    network: NetworkConfig = dataclasses.field(default_factory=NetworkConfig)
    search: SearchConfig = dataclasses.field(default_factory=SearchConfig)
    selfplay: SelfplayConfig = dataclasses.field(default_factory=SelfplayConfig)
    replay: ReplayConfig = dataclasses.field(default_factory=ReplayConfig)
    pretrain: PretrainConfig = dataclasses.field(default_factory=PretrainConfig)
    learner: LearnerConfig = dataclasses.field(default_factory=LearnerConfig)
    evaluation: EvaluationConfig = dataclasses.field(default_factory=EvaluationConfig)
    checkpoint: CheckpointConfig = dataclasses.field(default_factory=CheckpointConfig)

    def validate(self) -> None:
        """Checks every field that can be checked without the board's rules.

        Raises:
          UserError: the first field that breaks a rule; the line names it, its value and the fix.
        """
        from alphagat.config_validation import validate  # which imports this module

        validate(self)
