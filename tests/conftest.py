"""Settings of every test: eight CPU devices, programs compiled fast rather than well, and no silent rank promotion."""

import os

# Most of the suite's time is compilation, which this cuts by about 40 %. It must be set before JAX is imported.
os.environ["XLA_FLAGS"] = " ".join(
    [os.environ.get("XLA_FLAGS", ""), "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true"]
).strip()

import jax

# Before anything touches a device.
jax.config.update("jax_platforms", "cpu")
jax.config.update("jax_num_cpu_devices", 8)
jax.config.update("jax_numpy_rank_promotion", "raise")


def pytest_addoption(parser):
    parser.addoption(
        "--rounds", type=int, default=1, help="rounds of random games in tests/games, each of its own seed"
    )
