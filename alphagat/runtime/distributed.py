"""Joins several processes into one run."""

import contextlib
import dataclasses
import importlib.util
import os
import re
import socket
import threading
import time
from collections.abc import Iterator, Mapping

from alphagat.errors import UserError, first_line
from alphagat.runtime import terminal
from alphagat.wording import counted

CONNECT_SECONDS = 300
PATIENCE_SECONDS = 60  # added to JAX's own timeout: when that expires, JAX aborts the process
HEARTBEAT_SECONDS = 30  # a process without a heartbeat for this long is dead, and the others end

_num_processes = 1
_rank = 0


@dataclasses.dataclass(frozen=True)
class Cluster:
    """Identifies this process within the run.

    Attributes:
      nodes: number of processes; each has one or more devices.
      node_rank: rank of this process, from 0; rank 0 writes the run folder.
      coordinator: HOST:PORT on which rank 0 listens.
    """

    nodes: int
    node_rank: int
    coordinator: str


def connect(nodes: int | None, node_rank: int | None, coordinator: str | None, seconds: int = CONNECT_SECONDS) -> None:
    """Connects this process to the others of the run. Call it before touching any device.

    Without arguments, it detects the processes that Slurm, Open MPI or Kubernetes started; without these launchers, it
    does nothing. If a process is still missing after `seconds`, this one prints one line and exits with status 2.

    Raises:
      UserError: an argument is missing or invalid, or rank 0 does not answer within `seconds`.
    """
    cluster = _named(nodes, node_rank, coordinator, os.environ)
    method = None if cluster else detect(os.environ)
    if cluster is None and method is None:
        return
    import jax

    if cluster:
        _check_reachable(cluster, seconds)
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    where = f"--coordinator {cluster.coordinator}" if cluster else f"processes of {method}"
    try:
        with _exit_after(seconds, f"{where}: not all processes connected within {seconds} s; start the others, too"):
            jax.distributed.initialize(
                coordinator_address=cluster.coordinator if cluster else None,
                num_processes=cluster.nodes if cluster else None,
                process_id=cluster.node_rank if cluster else None,
                local_device_ids=_only_gpu(os.environ),
                cluster_detection_method="deactivate" if cluster else method,
                initialization_timeout=seconds + PATIENCE_SECONDS,
                heartbeat_timeout_seconds=HEARTBEAT_SECONDS,
            )
    except (RuntimeError, ValueError) as error:
        raise UserError(
            f"{where}: the processes did not connect ({first_line(error)}); check that all name the same address and "
            "number"
        ) from error
    from jax._src import distributed as jax_distributed  # jax.process_count would start the devices

    global _num_processes, _rank
    _num_processes, _rank = jax_distributed.global_state.num_processes, jax_distributed.global_state.process_id


@contextlib.contextmanager
def _exit_after(seconds: int, message: str) -> Iterator[None]:
    """Exits with one line if the body takes longer than `seconds`. An exception would not interrupt JAX."""

    def end() -> None:
        terminal.say(f"error: {message}")
        os._exit(2)

    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _only_gpu(environment: Mapping[str, str]) -> list[int] | None:
    """Returns the number of the GPU if this process sees exactly one; None: JAX chooses.

    Slurm shows each task its own GPU only, but JAX would take the one whose number is the rank of the task on its node.
    """
    visible = environment.get("CUDA_VISIBLE_DEVICES", "")
    return [0] if visible and "," not in visible else None


def disconnect() -> None:
    """Leaves the other processes, which must do the same: JAX would abort them after the end of the first process."""
    if _num_processes > 1:
        import jax

        with contextlib.suppress(RuntimeError):  # another process has died
            jax.distributed.shutdown()


def all_arrive(where: str, seconds: float) -> bool:
    """Waits for all processes to call this with the same name, each name once. Returns whether they do so in time."""
    if _num_processes == 1:
        return True
    import jax
    from jax._src import distributed as jax_distributed

    client = jax_distributed.global_state.client
    assert client is not None
    try:
        client.wait_at_barrier(where, round(1000 * seconds))
    except jax.errors.JaxRuntimeError:
        return False
    return True


def num_processes() -> int:
    """Returns the number of connected processes, without touching a device."""
    return _num_processes


def is_first() -> bool:
    """Returns whether this process is the only one, or that of rank 0, without touching a device."""
    return _rank == 0


def detect(environment: Mapping[str, str]) -> str | None:
    """Returns JAX's name of the launcher that started this process as one of several, or None. Raises UserError."""
    if environment.get("SLURM_JOB_ID") and _number("SLURM_NTASKS", environment) > 1 and "SLURM_PROCID" in environment:
        return "slurm"
    if _number("OMPI_COMM_WORLD_SIZE", environment) > 1:
        return "ompi"
    is_job = "KUBERNETES_SERVICE_HOST" in environment and "JOB_COMPLETION_INDEX" in environment
    return "k8s" if is_job and importlib.util.find_spec("kubernetes") else None


def _number(name: str, environment: Mapping[str, str]) -> int:
    """Returns the number of processes in a variable of a launcher; 1 without it."""
    text = environment.get(name, "1")
    if not re.fullmatch("[0-9]{1,9}", text):
        raise UserError(f"{name}={text[:40]!r}: it must be a number of processes; correct or unset it")
    return int(text)


def _named(
    nodes: int | None, node_rank: int | None, coordinator: str | None, environment: Mapping[str, str]
) -> Cluster | None:
    """Returns the cluster that the flags describe, or None without flags. Kubernetes jobs may omit the rank."""
    index = environment.get("JOB_COMPLETION_INDEX", "")
    if node_rank is None and nodes is not None and re.fullmatch("[0-9]{1,9}", index):
        node_rank = int(index)
    given = {"--nodes": nodes, "--node_rank": node_rank, "--coordinator": coordinator}
    missing = [name for name, value in given.items() if value is None]
    if len(missing) == len(given):
        return None
    if missing or nodes is None or node_rank is None or coordinator is None:
        raise UserError(f"{' and '.join(missing)} missing; a run of several processes needs {', '.join(given)}")
    if nodes < 1:
        raise UserError(f"--nodes {nodes}: it must be at least 1")
    if not 0 <= node_rank < nodes:
        raise UserError(f"--node_rank {node_rank}: it must be 0 to {nodes - 1}, since --nodes is {nodes}")
    host, _, port = coordinator.rpartition(":")
    if not _is_name(host) or not re.fullmatch("[0-9]{1,5}", port) or not 0 < int(port) < 65536:
        raise UserError(f"--coordinator {coordinator}: write HOST:PORT of the first process, such as 10.0.0.1:12345")
    return Cluster(nodes, node_rank, coordinator)


def _is_name(host: str) -> bool:
    """Returns whether a host has no empty or overlong part, for which Python raises UnicodeError on connecting."""
    try:
        return bool(host.encode("idna"))
    except UnicodeError:
        return False


def _check_reachable(cluster: Cluster, seconds: int) -> None:
    """Waits for the coordinator; JAX would abort the process if it cannot connect."""
    host, _, port = cluster.coordinator.rpartition(":")
    if cluster.node_rank == 0:
        terminal.say(f"waiting at {cluster.coordinator} for {counted(cluster.nodes - 1, 'other process')}")
        with contextlib.closing(socket.socket()) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("", int(port)))
            except OSError as error:
                raise UserError(
                    f"--coordinator {cluster.coordinator}: rank 0 cannot listen on port {port} ({error.strerror}); "
                    "name another port in all processes"
                ) from error
        return
    deadline = time.monotonic() + seconds
    while True:
        try:
            return socket.create_connection((host, int(port)), timeout=5).close()
        except OSError as error:
            if time.monotonic() > deadline:
                reason = error.strerror or str(error)
                raise UserError(
                    f"--coordinator {cluster.coordinator}: no answer after {seconds} s ({reason}); start "
                    "the process with --node_rank 0 first, on that host"
                ) from error
            time.sleep(0.5)
