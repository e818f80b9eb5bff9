"""A scripted engine: speaks GTP or UCI, well or badly, and plays what it is told to, whatever the board.

    python fake_engine.py gtp c3 resign die

Its arguments are its answers to the first, second, ... request for a move, and the last one from there on:

- `die`: it says its last words on stderr and exits with 3; `kill`: it kills itself; `hang`: it never answers; `babble`:
  nor does it, and it never stops printing; `pour`: the same in one line without end;
- `?words`: an error; anything else is the move.

Flags:

- `--log FILE`: the file gets its process id and every line that it reads, and `end of file` in the end. A second
  process with the same file goes on with the answer after the last one of the first;
- `--known WORDS`: what GTP's `list_commands` answers; none: an error;
- `--refuse WORDS`: which commands get an error, by the start of the line;
- `--skill NAME`: the name of UCI's option for the level, `Skill` by default;
- `--chatty`: answers with comments, blank lines, control characters, several lines, and the answer to another command;
- `--variants WORDS`: the games that UCI's option `UCI_Variant` offers; none: there is no such option;
- `--anonymous`: GTP answers without ids;
- `--stubborn`: ignores `quit`, and the end of its input.
"""

import argparse
import os
import re
import signal
import sys
import time
from typing import TextIO


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("protocol", choices=("gtp", "uci"))
    parser.add_argument("answers", nargs="*", default=["die"])
    parser.add_argument("--log", default=os.devnull)
    for flag in ("--known", "--refuse", "--variants"):
        parser.add_argument(flag, action="append", default=[])
    parser.add_argument("--skill", default="Skill")
    for flag in ("--chatty", "--anonymous", "--stubborn"):
        parser.add_argument(flag, action="store_true")
    options = parser.parse_args()
    speak = {"gtp": speak_gtp, "uci": speak_uci}[options.protocol]
    with open(options.log, "a+", buffering=1) as log:
        log.seek(0)
        num_given = sum(line.startswith(("genmove", "go ")) for line in log)
        options.answers = options.answers[num_given:] or options.answers[-1:]
        log.write(f"pid {os.getpid()}\n")
        speak(options, log)
        log.write("end of file\n")
        while options.stubborn:
            time.sleep(1)


def say(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def next_answer(answers: list[str]) -> str:
    """Takes the next answer, or does what it stands for."""
    answer = answers.pop(0) if len(answers) > 1 else answers[0]
    if answer == "die":
        sys.stderr.write("my last words\n")
        raise SystemExit(3)
    if answer == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    while answer == "hang":
        time.sleep(1)
    while answer == "babble":
        say("thinking\n" * 100)
    while answer == "pour":
        say("thinking " * 1000)
    return answer


def speak_gtp(options: argparse.Namespace, log: TextIO) -> None:
    for raw in sys.stdin:
        number, line = re.fullmatch(r"(\d*) ?(.*)", raw.strip()).groups()
        log.write(f"{line}\n")
        if line == "quit" and not options.stubborn:
            return
        if any(line.startswith(start) for start in options.refuse):
            answer = "?I refuse"
        elif line == "list_commands":
            answer = "\n".join(options.known) if options.known else "?unknown command"
        else:
            answer = next_answer(options.answers) if line.startswith("genmove") else ""
        sign, text = ("?", answer[1:]) if answer.startswith("?") else ("=", answer)
        head = f"{sign}{'' if options.anonymous else number} {text}"
        if options.chatty:
            say(f"\n# thinking\nhello\n={int(number) + 1000} z9\n\n{head}\t\r\n# well\nmore\x07\n\n\n")
        else:
            say(f"{head}\n\n")


def speak_uci(options: argparse.Namespace, log: TextIO) -> None:
    for raw in sys.stdin:
        line = raw.strip()
        log.write(f"{line}\n")
        if line == "quit" and not options.stubborn:
            return
        if line == "uci":
            say(f"id name Fake\noption name {options.skill} type spin default 20 min 0 max 20\n")
            if options.variants:
                offered = " ".join(f"var {name}" for name in ("chess", *options.variants))
                say(f"option name UCI_Variant type combo default chess {offered}\n")
            say("uciok\n")
        elif line == "isready":
            say("readyok\n")
        elif line.startswith("go"):
            move = next_answer(options.answers)
            say(f"info string thinking\nnonsense\nbestmove {move}\n")


if __name__ == "__main__":
    main()
