"""Device selection for notebooks."""

from absl import logging

from alphagat.bounds import Limits, check_integer
from alphagat.config import MAX_DEVICES
from alphagat.errors import UserError
from alphagat.runtime import xla
from alphagat.wording import counted

DEVICES = ("auto", "cpu", "gpu")
CPU_DEVICES = Limits(at_least=0, at_most=MAX_DEVICES)


def use_device(device: str = "auto", num_cpu_devices: int = 0) -> str:
    """Selects the devices that JAX uses, and returns a description of them. Call it before any use of JAX.

    It also sets compiler flags for GPUs, enables the compilation cache (`runtime.xla`), and silences Orbax.

    Args:
      device: `cpu`, `gpu`, or `auto` for an accelerator if there is one.
      num_cpu_devices: number of devices on the CPU; 0: eight, whatever the number of cores.

    Raises:
      UserError: `device` is unknown, `num_cpu_devices` is out of range, there is no GPU, or JAX already uses other
        devices.
    """
    if device not in DEVICES:
        raise UserError(f"DEVICE={device!r}: use one of {', '.join(DEVICES)}")
    num_cpu_devices = check_integer("num_cpu_devices", num_cpu_devices, CPU_DEVICES)
    logging.set_verbosity(logging.FATAL)
    xla.keep_loops_on_gpu()
    xla.use_cache()
    import jax  # JAX reads the location of the cache on import

    from alphagat.runtime import sharding

    if device == "cpu":
        jax.config.update("jax_platforms", "cpu")
    sharding.configure_cpu_devices(num_cpu_devices)
    devices = jax.devices()
    is_cpu = devices[0].platform == "cpu"
    there = counted(len(devices), f"{'CPU' if is_cpu else devices[0].device_kind} device")
    if device == "gpu" and is_cpu:
        raise UserError(
            "DEVICE='gpu': JAX finds none; use 'auto', or install jax[cuda12] (in Colab: Runtime, Change runtime type)"
        )
    asked = num_cpu_devices or sharding.DEFAULT_CPU_DEVICES
    if (device == "cpu" and not is_cpu) or (is_cpu and len(devices) != asked):
        raise UserError(f"DEVICE={device!r}: JAX already uses {there}; restart the kernel and run this cell first")
    return there
