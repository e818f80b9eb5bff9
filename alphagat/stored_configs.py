"""Reads stored configs, including those of earlier versions."""

from typing import Any

from alphagat import config_validation
from alphagat.config import Config, NetworkConfig

# What earlier versions did, for fields that they lacked and whose defaults are different.
ADDED: dict[str, dict[str, Any]] = {
    "network": {"blocks": ["attention"], "num_heads": 4},
    "search": {"min_value_range": 0.0, "exploration_plies": 0},
}


def read(values: Any) -> Config:
    """Returns the config that a run or a weights file stored with `config_fields.to_dict`.

    Raises:
      UserError: it is not a valid config.
    """
    return config_validation.from_dict(_updated(values) if isinstance(values, dict) else values)


def _updated(values: dict[str, Any]) -> dict[str, Any]:
    """Returns the values in the form of this version."""
    stored = {name: values.get(name, {}) for name in ADDED}
    updated = {name: ADDED[name] | each if isinstance(each, dict) else each for name, each in stored.items()}
    if isinstance(updated["network"], dict):
        _add_sizes(updated["network"])
    search = updated["search"]
    if isinstance(search, dict):
        if not search.pop("rescale_values", True):
            search["min_value_range"] = 1.0  # those runs did not divide Q-values
        warm_plies = search.pop("temperature_plies", None)
        if search.get("algorithm") == "puct" and warm_plies is not None:
            search |= {"exploration_plies": warm_plies} if warm_plies else {"temperature": 0.0}
    return values | updated


def _add_sizes(network: dict[str, Any]) -> None:
    """Adds sizes that followed from others: a key was as long as a value, and the value head had a pool per head."""
    heads, width = network["num_heads"], network.get("width", NetworkConfig().width)
    if isinstance(heads, int) and isinstance(width, int) and 0 < heads <= width:
        network.setdefault("key_size", width // heads)
        network.setdefault("value_pools", heads)
