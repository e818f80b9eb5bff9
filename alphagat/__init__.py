"""AlphaGAT: AlphaZero with a graph attention network, trained on all devices at once.

`train(config, workdir)` trains or resumes a run; `load(workdir)` returns a trained agent. JAX is imported on first use
of either, because the number of CPU devices must be set before.
"""

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"
__all__ = ["load", "train"]

if TYPE_CHECKING:
    from alphagat.agents.agent import load
    from alphagat.training.loop import train


def __getattr__(name: str) -> Any:
    if name == "train":
        from alphagat.training.loop import train

        return train
    if name == "load":
        from alphagat.agents.agent import load

        return load
    raise AttributeError(f"module 'alphagat' has no attribute {name!r}")
