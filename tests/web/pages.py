"""Steps on the page that its tests share."""

import json

from alphagat.games import make_game
from alphagat.serving.playthrough import Playthroughs


def open_page(page, address, sides="person,person", swap=False):
    """Opens the page with the given sides and swap rule, and waits until it is a person's turn and the position is
    analysed.
    """
    settings = {"sides": sides.split(","), "swap": swap, "policy": True, "line": True}
    page.add_init_script(f"localStorage.alphagat ??= {json.dumps(json.dumps(settings))}")
    page.goto(address)
    wait_for_ply(page, 1 if sides == "network,person" else 0)


def wait_for_ply(page, ply):
    """Waits for the position after `ply` moves, and for its analysis unless the game is over."""
    page.wait_for_selector(f'body[data-ply="{ply}"]')
    page.wait_for_selector('body[data-analysed="true"]')


def ply_of(page):
    return int(page.get_attribute("body", "data-ply"))


def is_over(page):
    return page.get_attribute("body", "data-over") == "true"


def saved(page):
    with page.expect_download() as download:
        page.click("#save")
    return json.loads(download.value.path().read_text())


def replayed(page):
    """Saves the game in the page and replays it."""
    game = saved(page)
    return Playthroughs(make_game(game["board"])).replay(game["seed"], game["moves"])


def resign(page):
    page.click("#resign")
    page.wait_for_selector('body[data-over="true"]')
