"""Measures how soon the page answers or announces the first analysis of each board and level in its menu.

    python benchmarks/first_answers.py --seconds 60

Starts `alphagat play` with an empty cache of compiled programs, and chooses boards and levels in Chromium until the
time is up, each for the first time. Prints the slowest: the milliseconds until an analysis is shown, or a line that
names the level and an estimate. Needs playwright, and Chromium at /usr/bin/chromium or `--chromium`.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time

from playwright.sync_api import Page, sync_playwright

LEVELS = "Beginner", "Easy", "Medium", "Hard", "Expert"
NUM_SLOWEST = 6
WAIT = """level => new Promise(resolve => {
  const start = performance.now(), preparing = document.getElementById("preparing");
  const look = () => {
    const said = preparing.hidden ? "" : preparing.textContent, time = Math.round(performance.now() - start);
    if (document.body.dataset.analysed === "true") resolve([time, "answered"]);
    else if (said.includes("about") && said.includes(level)) resolve([time, said]);
    else setTimeout(look, 20);
  };
  look();
})"""


def measure(page: Page, seconds: float) -> list[tuple[int, str, str, str]]:
    """Returns the milliseconds, what the page showed, the board and the level, for each board and level."""
    page.wait_for_selector("#boards option", state="attached")
    boards = [option.get_attribute("value") or "" for option in page.query_selector_all("#boards option")]
    found, start = [], time.monotonic()
    for board in boards:
        page.select_option("#boards", board)
        page.evaluate(WAIT, "")
        for level in LEVELS:
            if time.monotonic() - start > seconds:
                return found
            page.evaluate("document.body.dataset.analysed = 'false'")
            page.click(f"#strengths-0 label:has-text('{level}')")
            found.append((*page.evaluate(WAIT, level), board, level))
    return found


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
