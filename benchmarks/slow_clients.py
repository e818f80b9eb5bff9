"""Measures the latency of a player's moves over HTTP while many slow clients occupy the server.

A third of the slow clients sends nothing, a third sends its headers byte by byte, and a third its body. A client that loses
its connection opens another one a second later. They come from one address, the player's own, or from one address each.
The player opens a new connection for each move.

    python benchmarks/slow_clients.py --clients 900 --moves 200
"""

import argparse
import asyncio
import http.client
import json
import multiprocessing
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[1]
STARTS = (
    b"",
    b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Padding: ",
    b"POST /api/position HTTP/1.1\r\nHost: localhost\r\nContent-Length: 60000\r\n\r\n",
)
PAUSE_S = 1.0  # between two bytes, and before a new connection
RAMP_UP_S = 5.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, default=900, help="slow clients (default: %(default)s)")
    parser.add_argument("--moves", type=int, default=200, help="of the player (default: %(default)s)")
    parser.add_argument("--board", default="hex:5", help="(default: %(default)s)")
    parser.add_argument("--simulations", type=int, default=16, help="per move (default: %(default)s)")
    options = parser.parse_args()
    game = {"board": options.board, "simulations": options.simulations}
    with server(options) as address:
        play(address, game, 30)  # compiles
        print("slow clients             median ms   p99 ms   ratio of medians   failed moves   connections lost")
        alone, _ = report("none", *play(address, game, options.moves), None, 0)
        for name, addresses in (("from one address", 1), ("from one address each", options.clients)):
            with attack(address, options.clients, addresses) as lost:
                report(f"{options.clients} {name}", *play(address, game, options.moves), alone, lost.value)
        report("none", *play(address, game, options.moves), alone, 0)


def report(name: str, times: list[float], failed: int, alone: float | None, lost: int) -> tuple[float, float]:
    """Prints a row, and returns the median and the 99th percentile in ms."""
    median, tail = (float(each) for each in np.percentile(times or [np.nan], (50, 99)) * 1000)
    print(f"{name:26} {median:7.1f}  {tail:7.1f}   {median / (alone or median):16.2f}   {failed:12}   {lost:16}")
    return median, tail


@contextmanager
def server(options: argparse.Namespace) -> Iterator[tuple[str, int]]:
    """Starts the server with the shipped networks, and yields its address."""
    flags = ["--board", options.board, "--simulations", str(options.simulations), "--port", "0"]
    command = [sys.executable, "-m", "alphagat.serve", *flags]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as running:
        try:
            assert running.stdout is not None
            yield "127.0.0.1", int(running.stdout.readline().split()[3].rpartition(":")[2])
        finally:
            running.terminate()


def play(address: tuple[str, int], game: dict, moves: int) -> tuple[list[float], int]:
    """Plays games against itself; returns the seconds of each move, and the number of failed requests."""
    times, failed, played = [], 0, []
    while len(times) + failed < moves:
        start = time.perf_counter()
        status, answer = ask(address, {**game, "moves": played})
        if status == 200:
            times.append(time.perf_counter() - start)
            played.append(answer["action"])
        elif status == 422:  # the game is over
            played = []
        else:
            failed += 1
    return times, failed


def ask(address: tuple[str, int], request: dict) -> tuple[int | None, dict]:
    connection = http.client.HTTPConnection(*address, timeout=30)
    try:
        connection.request("POST", "/api/analysis", json.dumps(request), {"Content-Type": "application/json"})
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    except OSError:
        return None, {}
    finally:
        connection.close()


@contextmanager
def attack(address: tuple[str, int], clients: int, addresses: int) -> Iterator:
    """Runs slow clients in a process, and yields the counter of the connections that they have lost."""
    lost = multiprocessing.Value("i", 0)
    process = multiprocessing.Process(target=run_clients, args=(address, clients, addresses, lost), daemon=True)
    process.start()
    time.sleep(RAMP_UP_S)
    assert process.is_alive()
    try:
        yield lost
    finally:
        process.terminate()
        process.join()


def run_clients(address: tuple[str, int], clients: int, addresses: int, lost) -> None:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))

    async def run() -> None:
        await asyncio.gather(*(slow_client(address, number, number % addresses, lost) for number in range(clients)))

    asyncio.run(run())


async def slow_client(address: tuple[str, int], number: int, source: int, lost) -> None:
    """Keeps a connection for as long as the server allows, again and again."""
    local = (f"127.0.{source // 250}.{source % 250 + 1}", 0)  # the first is the player's
    start = STARTS[number % len(STARTS)]
    while True:
        with suppress(OSError):
            reader, writer = await asyncio.open_connection(*address, local_addr=local)
            writer.write(start)
            closed = asyncio.ensure_future(reader.read())
            while not (await asyncio.wait({closed}, timeout=PAUSE_S))[0]:
                writer.write(b"x" if start else b"")
            writer.close()
            closed.exception()
        lost.value += 1
        await asyncio.sleep(PAUSE_S)


if __name__ == "__main__":
    main()
