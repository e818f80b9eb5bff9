"""Device memory: the limit for programs, and the compiler's plan for each."""

import jax
from jax import stages

from alphagat.config import Config


def memory_limit(config: Config) -> float:
    """Returns the bytes that a device may use, by the config or else the driver; 0 if neither sets a limit."""
    if config.mesh.memory_gb:
        return config.mesh.memory_gb * 1e9
    return float((jax.local_devices()[0].memory_stats() or {}).get("bytes_limit", 0))


def memory_needed(program: stages.Compiled) -> float:
    """Returns the bytes of arguments, results and all between on one device; 0 where the compiler does not tell."""
    plan = program.memory_analysis()
    if plan is None:
        return 0.0
    held = plan.argument_size_in_bytes + plan.output_size_in_bytes - plan.alias_size_in_bytes
    return float(held + plan.temp_size_in_bytes + plan.generated_code_size_in_bytes)
