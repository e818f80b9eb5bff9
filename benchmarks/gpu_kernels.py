"""Compiles an iteration for an H200, without a GPU, and counts its kernels and the memory that they read and write.

    pip install "jax[cuda13]"
    python benchmarks/gpu_kernels.py --board connect_four --top 20

One row per loop of the program: how often it repeats where the compiler knows that, the kernels of one pass, and the
megabytes that they read and write. A kernel takes at least two microseconds, and about a microsecond more per 3.3 MB:
for an update that took 3.7 ms in one run on an H200, the estimate is 3.5 ms. The compiler chooses matrix products on
the GPU itself; here it takes its defaults. The fused kernel counts with its memory alone, without its arithmetic.
"""

import argparse
import math
import re
from collections import defaultdict
from typing import NamedTuple

import jax
import numpy as np
from accelerator import HALF, add_speed_flags, make_speed_config
from jax.experimental import topologies
from jax.sharding import AxisType, Mesh
from rich.console import Console
from rich.table import Table

from alphagat.agents import build
from alphagat.config import Config
from alphagat.networks.fused.weights import find_misfit
from alphagat.runtime import sharding
from alphagat.training.iteration import make_iteration, program_arguments
from alphagat.training.setup import make_run
from alphagat.training.state import placed_shapes

H200 = """
gpu_device_info {
  threads_per_block_limit: 1024 threads_per_warp: 32 shared_memory_per_block: 49152 shared_memory_per_core: 233472
  threads_per_core_limit: 2048 core_count: 132 fpus_per_core: 128 block_dim_limit_x: 2147483647
  block_dim_limit_y: 65535 block_dim_limit_z: 65535 memory_bandwidth: 4800000000000 l2_cache_size: 52428800
  clock_rate_ghz: 1.98 device_memory_size: 150000000000 shared_memory_per_block_optin: 232448
  cuda_compute_capability { major: 9 minor: 0 } registers_per_core_limit: 65536 registers_per_block_limit: 65536
}
platform_name: "CUDA"
dnn_version_info { major: 9 minor: 10 }
runtime_version { major: 13 minor: 0 }
device_description_str: "NVIDIA H200"
"""
BYTES = {"pred": 1, "s8": 1, "u8": 1, "bf16": 2, "f16": 2, "s16": 2, "u16": 2, "s64": 8, "u64": 8, "f64": 8}  # else 4
NOT_KERNELS = "parameter", "tuple", "get-tuple-element", "bitcast", "constant", "while", "conditional", "call"
INSTRUCTION = re.compile(r"\s*(?:ROOT )?%(\S+) = (\(.*?\)|\S+) ([\w\-]+)\((.*?)\)")
SHAPE = re.compile(r"(\w+)\[([\d,]*)\]")


class Kernel(NamedTuple):
    """One kernel: its name, the megabytes that it reads and writes, and the operation that it comes from."""

    name: str
    megabytes: float
    operation: str

    @property
    def microseconds(self) -> float:
        return max(2.0, 0.8 + self.megabytes / 3.3)


class Loop(NamedTuple):
    """The body of a loop: the number of passes, or "?", and the operation that it comes from."""

    passes: str
    operation: str


OUTSIDE = Loop("1", "outside loops")


def compile_iteration(config: Config) -> str:
    """Returns the program of an iteration for one H200, as the compiler's text."""
    device = topologies.get_topology_desc(
        platform="cuda", topology_name="h200", target_config=H200, topology="1x1x1"
    ).devices[0]
    axes = sharding.DATA, sharding.STAGE, sharding.MODEL
    mesh = Mesh(np.array(device).reshape(1, 1, 1), axes, axis_types=(AxisType.Auto,) * 3)
    jax.default_backend = lambda: "gpu"  # what the package asks
    build.find_obstacle = lambda network, _: find_misfit(network.topology, network.width, network.dtype.name)
    run = make_run(config, mesh)
    arguments = program_arguments(placed_shapes(run))
    compiled = make_iteration(run.boards[0], mesh).trace(*arguments).lower(lowering_platforms=("cuda",)).compile()
    return compiled.as_text() or ""


def size_of(shape: str) -> float:
    """Returns the megabytes of a shape, or of all shapes of a tuple."""
    sizes = (
        BYTES.get(kind, 4) * math.prod(int(size) for size in sizes.split(",") if size)
        for kind, sizes in SHAPE.findall(shape)
    )
    return sum(sizes) / 1e6


def find_kernels(program: str) -> dict[str, list[Kernel]]:
    """Returns the kernels of each computation that runs by itself, by its name."""
    shapes = {match[1]: match[2] for match in map(INSTRUCTION.match, program.splitlines()) if match}
    inside = {  # the parts of kernels
        name
        for line in program.splitlines()
        if (match := INSTRUCTION.match(line)) and match[3] not in NOT_KERNELS
        for name in re.findall(r"(?:calls|to_apply)=%?([\w.\-]+)", line)
    }
    kernels = defaultdict(list)
    for computation in re.split(r"\n(?=(?:ENTRY )?%\S+ \()", program):
        head = re.match(r"(?:ENTRY )?%(\S+) \(", computation)
        if not head or head[1] in inside:
            continue
        for line in computation.splitlines()[1:]:
            match = INSTRUCTION.match(line)
            if match and match[3] not in NOT_KERNELS:
                read = sum(size_of(shapes.get(name, "")) for name in re.findall(r"%([\w.\-]+)", match[4]))
                kernels[head[1]].append(Kernel(match[1], read + size_of(match[2]), operation_of(line)))
    return kernels


def find_loops(program: str) -> dict[str, Loop]:
    """Returns the loops of a program by the name of their bodies."""
    loops = {}
    for line in program.splitlines():
        if match := re.search(r" while\(.* body=%([\w.\-]+)", line):
            passes = re.search(r'known_trip_count":\{"n":"(\d+)"', line)
            loops[match[1]] = Loop(passes[1] if passes else "?", operation_of(line))
    return loops


def operation_of(line: str) -> str:
    name = re.search(r'op_name="([^"]*)"', line)
    return name[1] if name else ""


def show(kernels: dict[str, list[Kernel]], loops: dict[str, Loop], top: int, console: Console) -> None:
    table = Table("loop", "passes", "kernels", "MB", "estimate")
    found = sorted(kernels.items(), key=lambda item: -sum(each.microseconds for each in item[1]))
    for name, inside in found:
        loop = loops.get(name, OUTSIDE)
        megabytes = sum(each.megabytes for each in inside)
        microseconds = sum(each.microseconds for each in inside)
        row = loop.operation[-70:], loop.passes, str(len(inside)), f"{megabytes:,.1f}", f"{microseconds:,.0f} us"
        table.add_row(*row)
    console.print(table)
    for name, inside in found[: 3 if top else 0]:
        console.print(f"\n{loops.get(name, OUTSIDE).operation[-100:]}")
        for each in sorted(inside, key=lambda each: -each.megabytes)[:top]:
            console.print(f"{each.megabytes:9.2f} MB  {each.name[:34]:34}  {each.operation[-80:]}", highlight=False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--board", default="connect_four", help="default: %(default)s")
    add_speed_flags(parser)
    parser.add_argument("--top", type=int, default=0, help="also lists the largest kernels of the three largest loops")
    options = parser.parse_args()
    jax.config.update("jax_platforms", "cpu")
    program = compile_iteration(make_speed_config(options.board, HALF, options))
    show(find_kernels(program), find_loops(program), options.top, Console(width=140))


if __name__ == "__main__":
    main()
