"""What a notebook does first: it chooses what JAX computes on."""

from absl import logging

from alphagat.errors import UserError
from alphagat.runtime import xla

DEVICES = ("auto", "cpu", "gpu")


def use_device(device: str = "auto", num_cpu_devices: int = 0) -> str:
    """Chooses what JAX computes on, and returns that in words. To be called before anything has used JAX.

    Compiled programs are kept for the next time (`xla.use_cache`), and Orbax is silent.

    Args:
      device: `cpu`, `gpu`, or `auto`: an accelerator where there is one.
      num_cpu_devices: where JAX computes on the CPU; 0: the default of runs.

    Raises:
      UserError: there is no such choice, no GPU, or JAX computes on something else already.
    """
    if device not in DEVICES:
        raise UserError(f"DEVICE={device!r}: take one of {', '.join(DEVICES)}")
    logging.set_verbosity(logging.FATAL)
    xla.use_cache()
    import jax  # which reads, when it is imported, where programs are kept

    from alphagat.runtime import sharding

    if device == "cpu":
        jax.config.update("jax_platforms", "cpu")
    sharding.configure_cpu_devices(num_cpu_devices)
    devices = jax.devices()
    is_cpu = devices[0].platform == "cpu"
    if device == "gpu" and is_cpu:
        raise UserError(
            "DEVICE='gpu': JAX finds none; take 'auto', or install jax[cuda12] (in Colab: Runtime, Change runtime type)"
        )
    asked = num_cpu_devices or sharding.DEFAULT_CPU_DEVICES
    if (device == "cpu" and not is_cpu) or (is_cpu and len(devices) != asked):
        raise UserError(
            f"DEVICE={device!r}: JAX computes on {len(devices)} {devices[0].device_kind} device(s) already; restart "
            "the kernel, and run this cell first"
        )
    return f"{len(devices)} {devices[0].device_kind if not is_cpu else 'CPU'} device{'s' if len(devices) > 1 else ''}"
