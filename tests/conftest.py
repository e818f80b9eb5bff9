"""Settings of every test: eight CPU devices, programs compiled fast rather than well, and no silent rank promotion."""

import gc
import importlib.metadata
import os
import shutil
import signal
from pathlib import Path

from alphagat.runtime.xla import cache_folder

# Most of the suite's time is compilation; these flags cut it to a third. They must be set before JAX is imported.
FLAGS = ["--xla_backend_optimization_level=0", "--xla_llvm_disable_expensive_passes=true"]
if importlib.metadata.version("jaxlib").startswith("0.10."):  # later versions exit on this flag
    FLAGS.append("--xla_cpu_use_fusion_emitters=false")
MAX_COMPILED = 2 * 2**30  # bytes
MAX_MAPPINGS = 20_000  # Linux allows a process 65,530, each program takes three, and XLA crashes at the limit
if "PYTEST_XDIST_WORKER" not in os.environ:  # workers inherit the environment
    os.environ["XLA_FLAGS"] = " ".join([os.environ.get("XLA_FLAGS", ""), *FLAGS]).strip()
    # All processes of a test run, and later runs, share one cache, so each program compiles once.
    COMPILED = cache_folder() / "tests"
    if sum(file.stat().st_size for file in COMPILED.glob("*")) > MAX_COMPILED:
        shutil.rmtree(COMPILED)
    os.environ["JAX_COMPILATION_CACHE_DIR"] = str(COMPILED)
    os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"
    os.environ["JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES"] = "-1"

# Ignored in a background shell, and so in the processes that tests start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

gc.set_threshold(100_000, 50, 100)  # tracing allocates much that lives long; the default collects too often

import jax  # noqa: E402
import pytest  # noqa: E402

# Before anything touches a device.
jax.config.update("jax_platforms", "cpu")
jax.config.update("jax_num_cpu_devices", 8)
jax.config.update("jax_numpy_rank_promotion", "raise")
jax.devices()  # now, because a run may set another number of CPU devices before the first use


# Long files with few tests. They run first, so that all processes end at about the same time.
LONG = ("tests/test_notebooks.py", "tests/training/")


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: not item.nodeid.startswith(LONG))


def pytest_addoption(parser):
    parser.addoption(
        "--rounds", type=int, default=1, help="rounds of random games in tests/games, and of damage in fuzz tests"
    )


@pytest.fixture(autouse=True, scope="module")
def _few_mappings():
    """Drops compiled programs between modules before there are too many for one process."""
    yield
    mappings = Path("/proc/self/maps")
    if mappings.exists() and len(mappings.read_text().splitlines()) > MAX_MAPPINGS:
        jax.clear_caches()
        gc.collect()


@pytest.fixture
def rounds(request: pytest.FixtureRequest) -> int:
    return request.config.getoption("--rounds")
