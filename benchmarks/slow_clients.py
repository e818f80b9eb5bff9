"""Measures the latency of a player's moves over HTTP while many slow clients occupy the server.

A third of the slow clients sends nothing, a third sends its headers byte by byte, and a third its body. A client that
loses its connection opens another one a second later. They come from one address, the player's own, or from one address
each. The player opens a new connection for each move.

    python benchmarks/slow_clients.py --clients 1100
"""

import argparse
import asyncio
import http.client
import json
import multiprocessing
import re
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
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
    parser.add_argument("--moves", type=int, default=60, help="of the player per round (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=5, help="with and without slow clients (default: %(default)s)")
    parser.add_argument("--board", default="hex:5", help="(default: %(default)s)")
    parser.add_argument("--simulations", type=int, default=16, help="per move (default: %(default)s)")
    options = parser.parse_args()
    game = {"board": options.board, "simulations": options.simulations}
    crowds = {"none": 0, "from one address": 1, "from one address each": options.clients}
    times: dict[str, list[list[float]]] = {name: [] for name in crowds}
    lost = dict.fromkeys(crowds, 0)
    with server(options) as address:
        play(address, game, 30)  # compiles
        for _ in range(options.rounds):
            for name, addresses in crowds.items():
                with attack(address, options.clients, addresses) if addresses else nullcontext() as counter:
                    times[name].append(play(address, game, options.moves))
                    lost[name] += counter.value if counter else 0
    print(f"{options.clients} slow clients       median ms   p99 ms   ratio   failed moves   connections lost")
    for name in crowds:
        print(row(name, times[name], times["none"], options.rounds * options.moves, lost[name]))


def row(name: str, times: list[list[float]], alone: list[list[float]], moves: int, lost: int) -> str:
    """Returns a table row; the ratio is the median over rounds of the ratio of medians."""
    flat = [1000 * each for part in times for each in part]
    median, tail = np.percentile(flat or [np.nan], (50, 99))
    ratio = np.median([np.median(part or [np.nan]) / np.median(other) for part, other in zip(times, alone)])
    return f"{name:23} {median:9.1f} {tail:8.1f} {ratio:7.2f}   {moves - len(flat):12}   {lost:16}"


@contextmanager
def server(options: argparse.Namespace) -> Iterator[tuple[str, int]]:
    """Starts the server with the shipped networks, and yields its address."""
    flags = ["--board", options.board, "--simulations", str(options.simulations), "--port", "0"]
    command = [sys.executable, "-m", "alphagat", "play", *flags]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as running:
        try:
            assert running.stdout is not None
            (port,) = re.findall(r"http://127.0.0.1:(\d+)", running.stdout.readline())
            yield "127.0.0.1", int(port)
        finally:
            running.terminate()


def play(address: tuple[str, int], game: dict, moves: int) -> list[float]:
    """Plays games against itself with `moves` requests for a move; returns the seconds of each that was answered."""
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
    return times


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
