"""Averages the parameters of trained networks."""

import dataclasses
from collections.abc import Sequence

import jax
import numpy as np

from alphagat.agents.agent import Agent, load
from alphagat.agents.compatibility import differing_fields
from alphagat.errors import UserError


def average(agent: Agent, sources: Sequence[str]) -> Agent:
    """Returns the agent with the mean of its parameters and those of other networks.

    The mean of networks that continued from one network often keeps the strengths of each (Wortsman et al. 2022, Model
    soups, section 3; Robust fine-tuning of zero-shot models, section 3). The mean of networks that trained separately
    is useless.

    Args:
      sources: names of the others, as for `agent.load`.

    Raises:
      UserError: a network cannot be loaded, is of another family, or has another architecture.
    """
    every = [agent.params]
    for source in sources:
        other = load(source, board=agent.game.name)
        if differing := differing_fields(agent.config.network, other.config.network):
            fields = ", ".join(f"config.network.{name}" for name in differing)
            raise UserError(f"network {source}: it differs from the first in {fields}; take networks of one shape")
        every.append(other.params)
    mean = jax.tree.map(lambda *leaves: jax.device_put(np.mean(jax.device_get(leaves), axis=0)), *every)
    return dataclasses.replace(agent, params=mean)
