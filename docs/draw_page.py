"""Takes the picture of the page that `alphagat play` serves at `--address`: `python docs/draw_page.py`."""

import argparse
import json
import shutil
from pathlib import Path
from urllib.parse import urlencode

from playwright.sync_api import sync_playwright

from alphagat.games import make_game

BOARD, SIMULATIONS = "hex:7", 64
MOVES = ("b6", "d3", "e3", "d4", "b3", "b2", "e4", "b7", "c2", "d1")
LEVEL = {"network": "", "simulations": SIMULATIONS, "isBeginner": False}
SETTINGS = {"sides": ["person", "person"], "policy": True, "line": True, "engines": [LEVEL, LEVEL]}
PATIENCE_MS = 300_000  # of compilation


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--address", default="http://127.0.0.1:8000", help="default: %(default)s")
    parser.add_argument("--out", type=Path, default=Path("docs/page.png"), help="default: %(default)s")
    options = parser.parse_args()
    names = make_game(BOARD).action_names
    moves = ".".join(str(names.index(move)) for move in MOVES)
    game = urlencode({"board": BOARD, "moves": moves, "ply": 0, "sides": "person.person"})
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1200, "height": 980}, reduced_motion="reduce")
        page.set_default_timeout(PATIENCE_MS)
        page.add_init_script(f"localStorage.alphagat = {json.dumps(json.dumps(SETTINGS))}")
        page.goto(f"{options.address}#{game}")
        for ply in range(len(MOVES) + 1):  # the graph needs the value of every position
            if ply:
                page.click("text=Forward")
            page.wait_for_selector(f'body[data-ply="{ply}"][data-analysed="true"]')
        page.wait_for_selector("text=Preparing", state="hidden")  # the other levels
        page.screenshot(path=options.out)
        browser.close()


if __name__ == "__main__":
    main()
