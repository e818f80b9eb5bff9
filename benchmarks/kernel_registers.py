"""Compiles the fused kernel for an H100, without a GPU, and prints the registers that it takes.

    pip install triton            # 3.9; beside JAX 0.10.2, whose Triton programs it reads
    python benchmarks/kernel_registers.py --board connect_four --width 64 --num_blocks 6

One line: warps, stages, registers per thread, bytes of spilled registers, and bytes of shared memory. A thread has at
most 255 registers; spills go through the L1 cache, so many of them make a kernel slow.
"""

import argparse
import re
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
from jax._src.interpreters import mlir
from jax._src.lib.mlir import ir  # pyright: ignore[reportPrivateImportUsage]
from jaxlib.triton import dialect

from alphagat.agents.build import make_portable_network
from alphagat.config import Config
from alphagat.games import make_game
from alphagat.networks.fused.network import FusedNetwork
from alphagat.networks.gat import GraphAttentionNetwork


def make_fused(options: argparse.Namespace) -> tuple[FusedNetwork, Any]:
    """Returns the fused network, and the shape of its features."""
    config = Config(boards=(options.board,))
    config.network.width, config.network.num_blocks = options.width, options.num_blocks
    config.network.precision = options.precision
    game = make_game(options.board)
    network = make_portable_network(config, game)
    assert isinstance(network, GraphAttentionNetwork)
    shape = 2, game.topology.num_nodes, game.num_features
    return FusedNetwork(network), jax.ShapeDtypeStruct(shape, jnp.float32)


def find_kernels(operation: Any) -> Iterator[tuple[str, int, int, str]]:
    """Yields the name, the numbers of warps and stages, and the Triton program of each kernel in an operation."""
    attributes = operation.attributes
    if "mhlo.backend_config" in attributes and "triton" in str(attributes["call_target_name"]):
        config = attributes["mhlo.backend_config"]
        context = mlir.make_ir_context()
        dialect.register_dialect(context)
        with context:
            text = str(ir.Module.parse(config["ir"].value_bytes))
        yield config["name"].value, config["num_warps"].value, config["num_stages"].value, text
    for region in operation.regions:
        for block in region.blocks:
            for inner in block.operations:
                yield from find_kernels(inner.operation)


def compile_kernel(program: str, num_warps: int, num_stages: int) -> str:
    """Returns what the assembler says of the registers of one kernel, and its shared memory."""
    # Imported here, so that --help works without it.
    import triton  # pyright: ignore[reportMissingImports]
    from triton.backends.compiler import GPUTarget  # pyright: ignore[reportMissingImports]

    target, options = GPUTarget("cuda", 90, 32), {"num_warps": num_warps, "num_stages": num_stages}
    with tempfile.TemporaryDirectory() as folder:
        source, assembly = Path(folder) / "kernel.ttir", Path(folder) / "kernel.ptx"
        source.write_text(program)
        kernel = triton.compile(str(source), target=target, options=options)
        assembly.write_text(kernel.asm["ptx"])
        # The newer one has a suffix.
        assembler = max(Path(str(triton.__file__)).parent.glob("backends/nvidia/bin/ptxas*"))
        command = [assembler, "-v", "--gpu-name=sm_90a", assembly, "-o", Path(folder) / "kernel.cubin"]
        said = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    found = re.findall(r"\d+ registers|\d+ bytes spill (?:stores|loads)", said)
    return ", ".join([*found[::-1], f"{kernel.metadata.shared} bytes of shared memory"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--board", default="connect_four", help="default: %(default)s")
    parser.add_argument("--width", type=int, default=64, help="default: %(default)s")
    parser.add_argument("--num_blocks", type=int, default=6, help="default: %(default)s")
    parser.add_argument("--precision", default="bfloat16", help="float32 or bfloat16 (default: %(default)s)")
    options = parser.parse_args()
    jax.config.update("jax_platforms", "cpu")
    network, nodes = make_fused(options)
    params = jax.eval_shape(network.init, jax.random.key(0), nodes)

    lowered: Any = jax.jit(network.apply).trace(params, nodes).lower(lowering_platforms=("cuda",))
    for name, warps, stages, program in sorted(set(find_kernels(lowered.compiler_ir().operation))):
        print(f"{name}: {warps} warps, {stages} stages, {compile_kernel(program, warps, stages)}", flush=True)


if __name__ == "__main__":
    main()
