"""Measures how soon the page answers or announces the first analysis of each board and level in its menu.

    python benchmarks/first_answers.py --seconds 60

Starts `alphagat play` with an empty cache of compiled programs, and chooses boards and levels in Chromium until the
time is up, each for the first time. Prints the slowest: the milliseconds until the board is open, with an analysis or
with a line that names the level and an estimate. The first board, which opens by itself, is not timed. Needs
playwright, and Chromium at /usr/bin/chromium or `--chromium`.
"""

import argparse
import functools
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

from playwright.sync_api import Page, sync_playwright

LEVELS = "Beginner", "Easy", "Medium", "Hard", "Expert"
NUM_SLOWEST = 6
LIMIT_S = 60
START = "() => { document.body.dataset.analysed = 'false'; return performance.now(); }"
WAIT = """([start, level, limit]) => new Promise(resolve => {
  const preparing = document.getElementById("preparing");
  const look = () => {
    const said = preparing.hidden ? "" : preparing.textContent, time = Math.round(performance.now() - start);
    const isOpen = !document.querySelector("main").inert;
    if (isOpen && document.body.dataset.analysed === "true") resolve([time, "answered"]);
    else if (isOpen && said.includes("about") && said.includes(level)) resolve([time, said]);
    else if (time > limit) resolve([time, "nothing"]);
    else setTimeout(look, 20);
  };
  look();
})"""

Found = tuple[int, str, str, str]  # milliseconds, what the page showed, the board and the level


def measure(page: Page, seconds: float) -> list[Found]:
    """Returns what the page showed for each board and level: the level that is set when a board is opened, then the
    others.
    """
    page.wait_for_selector("#boards option", state="attached")
    boards = [option.get_attribute("value") or "" for option in page.query_selector_all("#boards option")]
    page.wait_for_selector("body[data-analysed=true]", timeout=1000 * LIMIT_S)  # the first board, which opens by itself
    found, end = [], time.monotonic() + seconds
    for board in boards[1:]:
        set_level = page.inner_text("#strengths-0 label:has(:checked)").strip()
        found.append(answer(page, board, set_level, functools.partial(page.select_option, "#boards", board)))
        for level in LEVELS:
            if time.monotonic() > end:
                return found
            if level != set_level:
                choose = functools.partial(page.click, f"#strengths-0 label:has-text('{level}')")
                found.append(answer(page, board, level, choose))
    return found


def answer(page: Page, board: str, level: str, choose: Callable[[], object]) -> Found:
    """Chooses a board or level, and waits until the page has shown something."""
    start = page.evaluate(START)
    choose()
    milliseconds, said = page.evaluate(WAIT, [start, level, 1000 * LIMIT_S])
    return milliseconds, said, board, level


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60, help="default: %(default)s")
    parser.add_argument("--chromium", default="/usr/bin/chromium", help="default: %(default)s")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {"JAX_COMPILATION_CACHE_DIR": f"{folder}/cache", "HOME": folder}
        command = [sys.executable, "-m", "alphagat", "play", "--port", "0"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=folder, env=environment) as server:
            try:
                assert server.stdout is not None
                (address,) = re.findall(r"http://\S+", server.stdout.readline())
                with sync_playwright() as playwright:
                    browser = playwright.chromium.launch(executable_path=options.chromium, args=["--no-sandbox"])
                    page = browser.new_page()
                    page.goto(address)
                    found = measure(page, options.seconds)
            finally:
                server.terminate()
    print(f"{len(found)} boards and levels; the slowest:")
    for milliseconds, said, board, level in sorted(found, reverse=True)[:NUM_SLOWEST]:
        print(f"{milliseconds:6} ms  {board}, {level}: {said}")


if __name__ == "__main__":
    main()
