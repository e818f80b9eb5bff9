"""Settings of every test: eight CPU devices, and no silent rank promotion."""

import jax

# Before anything touches a device.
jax.config.update("jax_platforms", "cpu")
jax.config.update("jax_num_cpu_devices", 8)
jax.config.update("jax_numpy_rank_promotion", "raise")
