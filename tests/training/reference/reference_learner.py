"""A slow reference of the learner: batches, loss, optimizers, schedule and moving average.

It is written from docs/guides/design.md and the help of the config, one position and one parameter at a time. The
network is a black box, because it has tests of its own.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from alphagat.config import LearnerConfig
from alphagat.networks import Network
from tests.training.reference.reference_selfplay import Rules

ADAM_DECAYS, LAMB_EPSILON, MOMENTUM = (0.9, 0.999), 1e-6, 0.9


class Learner:
    """Parameters, optimizer state and moving average; numpy float32.

    Attributes:
      moments: of each optimizer by the name of optax: `mu` and `nu` of LAMB, `trace` of SGD.
      step: updates so far.
    """

    def __init__(self, config: LearnerConfig, rules: Rules, network: Network, params: Any, total_updates: int):
        self._config, self._rules, self._total_updates = config, rules, total_updates
        self._gradient = jax.jit(jax.grad(_loss, has_aux=True), static_argnums=(1, 3, 4))
        self._network = network
        self.params, self.step, self.last_rate = params, 0, 0.0
        self.average = params if config.ema_decay else None
        names = {"lamb": ("mu", "nu"), "sgd": ("trace",)}[config.optimizer]
        self.moments = {name: jax.tree.map(np.zeros_like, params) for name in names}

    @property
    def acting(self) -> Any:
        """The parameters that play."""
        return self.params if self.average is None else self.average

    def _learning_rate(self) -> float:
        """Returns the rate of the next update: a linear warm-up from 0, then a cosine to the final fraction."""
        config = self._config
        warmup, last = config.warmup_steps, config.final_learning_rate_fraction
        if self.step < warmup:
            return config.learning_rate * self.step / warmup
        progress = min((self.step - warmup) / (self._total_updates - warmup), 1)
        return config.learning_rate * (last + (1 - last) * (1 + np.cos(np.pi * progress)) / 2)

    def update(self, examples: list[tuple[Any, int]]) -> dict[str, float]:
        """Runs one update on pairs of a sample and the number of its symmetry; returns the metrics."""
        config, rate = self._config, self._learning_rate()
        self.last_rate = rate
        batch = jax.tree.map(lambda *x: np.stack(x), *[self._example(*each) for each in examples])
        weights = config.value_weight, config.ownership_weight
        gradients, metrics = jax.device_get(self._gradient(self.params, self._network, batch, *weights))
        metrics |= {f"grad_norm/{name}": _norm(part) for name, part in gradients["params"].items()}
        metrics["grad_norm"] = norm = _norm(gradients)
        gradients = jax.tree.map(lambda x: x * min(1.0, config.clip_norm / norm), gradients)
        steps = {"lamb": self._lamb_step, "sgd": self._sgd_step}[config.optimizer](gradients)
        self.params = jax.tree.map(lambda x, step: np.float32(x - rate * step), self.params, steps)
        if self.average is not None:
            self.average = jax.tree.map(
                lambda old, new: np.float32(config.ema_decay * old + (1 - config.ema_decay) * new),
                self.average,
                self.params,
            )
        self.step += 1
        return metrics

    def _example(self, sample: Any, symmetry: int) -> dict[str, np.ndarray]:
        """Returns the input and targets of the network, all transformed by one symmetry of the board."""
        nodes = self._rules.symmetries.node_permutations[symmetry]
        actions = self._rules.symmetries.action_permutations[symmetry]
        return {
            "nodes": self._rules.observe(sample.state)[nodes],
            "legal": np.asarray(sample.state.legal_action_mask)[actions],
            "policy": sample.policy_target[actions],
            "policy_weight": sample.policy_weight,
            "value": self._value_target(sample.value_target),
        } | {name: np.float32(target[nodes]) for name, target in sample.auxiliary.items()}

    def _value_target(self, value: np.ndarray) -> np.ndarray:
        """Returns the value, or the weights of the two nearest returns of the support, whose mean is the value."""
        support = self._rules.game.value_support
        if support is None:
            return value
        return np.array([np.interp(value, support, hat) for hat in np.eye(len(support))], np.float32)

    def _lamb_step(self, gradients: Any) -> Any:
        """Follows You et al. 2020, algorithm 2; only matrices have weight decay and a trust ratio."""
        count = self.step + 1
        for name, decay, power in (("mu", ADAM_DECAYS[0], 1), ("nu", ADAM_DECAYS[1], 2)):
            self.moments[name] = jax.tree.map(
                lambda old, g, decay=decay, power=power: np.float32(decay * old + (1 - decay) * g**power),
                self.moments[name],
                gradients,
            )

        def step(path: Any, param: np.ndarray, mu: np.ndarray, nu: np.ndarray) -> np.ndarray:
            first, second = mu / (1 - ADAM_DECAYS[0] ** count), nu / (1 - ADAM_DECAYS[1] ** count)
            direction = first / (np.sqrt(second) + LAMB_EPSILON)
            if not _is_matrix(path):
                return direction
            direction = direction + self._config.weight_decay * param
            return direction * np.linalg.norm(param) / np.linalg.norm(direction)

        return jax.tree_util.tree_map_with_path(step, self.params, self.moments["mu"], self.moments["nu"])

    def _sgd_step(self, gradients: Any) -> Any:
        def add(path: Any, trace: np.ndarray, gradient: np.ndarray, param: np.ndarray) -> np.ndarray:
            decay = self._config.weight_decay if _is_matrix(path) else 0.0
            return np.float32(MOMENTUM * trace + gradient + decay * param)

        self.moments["trace"] = jax.tree_util.tree_map_with_path(add, self.moments["trace"], gradients, self.params)
        return self.moments["trace"]


def _loss(params: Any, network: Network, batch: dict, value_weight: float, ownership_weight: float) -> tuple:
    """Returns policy + `value_weight` * value + `ownership_weight` * ownership, and these parts."""
    has_ownership = "ownership" in batch
    options = {"with_auxiliary": True} if has_ownership else {}
    logits, values, *others = network.apply(params, batch["nodes"], **options)
    odds = jnp.where(batch["legal"], jnp.exp(logits - logits.max(axis=1, keepdims=True)), 0.0)
    chances = odds / odds.sum(axis=1, keepdims=True)
    logs = jnp.log(jnp.where(batch["legal"], chances, 1.0))
    errors = (values - batch["value"]) ** 2
    if errors.ndim == 2:  # logits of a distribution over returns
        errors = -(batch["value"] * jax.nn.log_softmax(values)).sum(axis=1)
    parts = {
        "policy_loss": -(batch["policy_weight"] * (batch["policy"] * logs).sum(axis=1)).mean(),
        "value_loss": errors.mean(),
        "policy_entropy": -(chances * logs).sum(axis=1).mean(),
    }
    loss = parts["policy_loss"] + value_weight * parts["value_loss"]
    if has_ownership:
        parts["ownership_loss"] = ((others[0]["ownership"] - batch["ownership"]) ** 2).mean()
        loss += ownership_weight * parts["ownership_loss"]
    return loss, parts


def _is_matrix(path: Any) -> bool:
    """Kernels and relation weights are matrices; biases, norm scales and relation biases are not."""
    return path[-1].key in ("kernel", "relation_weights")


def _norm(tree: Any) -> float:
    return float(np.sqrt(sum((leaf.astype(np.float64) ** 2).sum() for leaf in jax.tree.leaves(tree))))
