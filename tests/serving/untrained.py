"""Weight files of small untrained networks."""

from pathlib import Path

import jax

from alphagat.agents import weight_files
from alphagat.agents.build import make_configured_network, make_params
from alphagat.config import Config
from alphagat.games import make_game


def save_untrained(folder: Path, *boards: str, name: str = "gat") -> str:
    """Writes a small network for boards of one family, and returns the path."""
    config = Config(boards=boards)
    config.network.name = name
    config.network.width, config.network.num_blocks, config.network.num_heads, config.network.mlp_ratio = 8, 2, 2, 1
    config.network.blocks = ("mixing", "attention")
    game = make_game(boards[0])
    params = make_params(game, make_configured_network(config, game), jax.random.key(0))
    file = folder / f"{boards[0].replace(':', '-')}-{name}.safetensors"
    weight_files.write(file, params, config, 0)
    return str(file)
