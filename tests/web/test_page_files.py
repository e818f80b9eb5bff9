"""Games in files, links and the address of the page."""

import json

import pytest

from alphagat.evaluation.game_files import GameRecord, read_games, to_text
from alphagat.serving.limits import MAX_FILE, MAX_NAME
from tests.serving.untrained import save_untrained
from tests.web.pages import open_page, saved, wait_for_ply


def recorded(page):
    with page.expect_download() as download:
        page.click("#record")
    (record,) = read_games(download.value.path().read_text())
    return record


def recorded_names(page):
    return recorded(page).names


def test_a_saved_game_loads(serve, page, tmp_path):
    open_page(page, serve("hex:3"))
    for ply, cell in enumerate(("b2", "a1", "c1")):
        page.click(f'.hit[data-name="{cell}"]')
        wait_for_ply(page, ply + 1)
    game = saved(page)
    page.click("#first")
    wait_for_ply(page, 0)
    with page.expect_download() as download:
        page.click("#record")
    assert download.value.path().read_text().count(";") == 4
    page.click("#new")
    wait_for_ply(page, 0)
    file = tmp_path / "game.json"
    file.write_text(json.dumps({**game, "board": "hex:4", "file": {}}))  # what the page itself notes has no effect
    page.set_input_files("#file", file)
    wait_for_ply(page, 3)
    assert saved(page) == {**game, "board": "hex:4"}
    for wrong, message in (
        ("{", "not an AlphaGAT game"),
        ({**game, "board": "go:9"}, "does not offer the board go:9"),
        ({**game, "moves": ["b2", "b2"]}, "move 2, b2"),
    ):
        file.write_text(wrong if isinstance(wrong, str) else json.dumps(wrong))
        page.set_input_files("#file", file)
        page.wait_for_selector(f"#toast:has-text('{message}')")
    assert saved(page)["moves"] == game["moves"]
    file = tmp_path / "game.sgf"
    file.write_text(to_text(GameRecord("hex:3", ("one", "other"), ("a2", "b2"), (0, 1), 0)))
    page.set_input_files("#file", file)
    wait_for_ply(page, 2)
    assert (saved(page)["board"], saved(page)["moves"]) == ("hex:3", ["a2", "b2"])
    file.write_text("nonsense")
    page.set_input_files("#file", file)
    page.wait_for_selector("#toast:has-text('neither PGN nor SGF')")
    file.write_text(" " * (MAX_FILE + 1))
    page.set_input_files("#file", file)
    page.wait_for_selector("#toast:has-text('This file is too large; open one with fewer games.')")


def test_a_record_names_the_networks_and_levels(start, page, tmp_path):
    source = save_untrained(tmp_path, "hex:4")
    engines = [
        {"network": "shipped", "simulations": 0, "isBeginner": True},
        {"network": source, "simulations": 16, "isBeginner": False},
    ]
    settings = {"sides": ["network", "network"], "engines": engines}
    page.add_init_script(f"localStorage.alphagat = {json.dumps(json.dumps(settings))}")
    page.goto(start([source, "shipped"], "hex:4"))
    page.wait_for_selector('body[data-over="true"]')
    first, second = recorded_names(page)
    assert first == "AlphaGAT, Beginner (0 simulations)"
    level = ", Medium (16 simulations)"
    assert second == "…" + source[len(level) + 1 - MAX_NAME :] + level
    page.click("#sides label:has-text('Blue')")
    assert recorded_names(page) == (first, "Person")


def test_a_record_of_the_only_network_names_its_level(serve, page):
    open_page(page, serve("hex:3"))
    page.click("#sides label:has-text('Blue')")
    assert recorded_names(page) == ("AlphaGAT, Easy (0 simulations)", "Person")


def test_a_link_with_a_ply_that_is_no_number_shows_the_last_position(serve, page):
    page.goto(f"{serve('hex:3')}/#board=hex:3&moves=4.0&ply=abc")
    wait_for_ply(page, 2)


def test_a_reload_keeps_the_game_and_a_link_shares_it(serve, page, browser):
    address = serve("hex:3")
    open_page(page, address)
    for ply, cell in enumerate(("a1", "b2", "c3")):
        page.click(f'.hit[data-name="{cell}"]')
        wait_for_ply(page, ply + 1)
    page.click("#back")
    wait_for_ply(page, 2)
    link, before = page.url, saved(page)
    page.reload()
    wait_for_ply(page, 2)
    assert saved(page) == before
    assert [each.inner_text() for each in page.query_selector_all("#moves button")] == ["a1", "b2", "c3"]
    other = browser.new_page()
    other.goto(link)
    wait_for_ply(other, 2)
    assert saved(other) == before
    other.goto(f"{address}/#board=hex:3&moves=4.0")  # without a new page, so both games have two plies
    other.wait_for_selector("#moves > :first-child:has-text('b2')")
    assert saved(other)["moves"] == ["b2", "a1"]
    other.close()


def test_a_link_keeps_the_sides(serve, page, browser):
    """Otherwise the network would move at once for a person who opens it as the other side."""
    page.add_init_script("localStorage.alphagat ??= JSON.stringify({ sides: ['network', 'person'] })")
    page.goto(serve("hex:3"))
    wait_for_ply(page, 1)
    other = browser.new_page()
    other.goto(page.url)  # with the default sides: the person moves first
    wait_for_ply(other, 1)
    assert other.inner_text("#status-text") == "Your move"
    assert other.is_checked("#sides label:has-text('Blue') input")
    other.close()


@pytest.mark.parametrize(
    ("fragment", "message"),
    [
        ("board=hex:99", "This server does not offer the board hex:99."),
        ("board=hex:3&moves=1.1", "move 2, 1: it is not legal there"),
        ("board=hex:3&moves=x", "moves"),
        ("board=hex:3&seed=-1", "seed"),
    ],
)
def test_a_broken_link_opens_the_default_board_with_a_message(serve, page, fragment, message):
    page.goto(f"{serve('hex:3')}/#{fragment}")
    wait_for_ply(page, 0)
    assert message in page.inner_text("#toast")


def test_a_rejected_link_leaves_the_address_of_the_game(serve, page):
    open_page(page, serve("hex:3"))
    page.evaluate("location.hash = 'board=hex:99&seed=1'")
    page.wait_for_selector("#toast:has-text('does not offer the board hex:99')")
    page.wait_for_url(lambda url: "board=hex%3A3" in url)  # after an answer of the server


@pytest.mark.parametrize("replace", ["key", "menu", "file"])
def test_back_restores_a_replaced_game(serve, page, tmp_path, replace):
    open_page(page, serve("hex:3"))
    page.click('.hit[data-name="b2"]')
    wait_for_ply(page, 1)
    before, link = saved(page), page.url
    if replace == "key":
        page.keyboard.press("n")
    elif replace == "menu":
        page.select_option("#boards", "hex:4")
    else:
        file = tmp_path / "game.json"
        file.write_text(json.dumps({**before, "moves": ["a1", "a2"]}))
        page.set_input_files("#file", file)
    wait_for_ply(page, 2 if replace == "file" else 0)
    after = page.url
    page.go_back()
    wait_for_ply(page, 1)
    assert (saved(page), page.url) == (before, link)
    page.go_forward()
    page.wait_for_url(after)
    wait_for_ply(page, 2 if replace == "file" else 0)


def test_a_game_without_moves_is_no_entry_of_the_history(serve, page):
    open_page(page, serve("hex:3"))
    entries = page.evaluate("history.length")
    page.click("#new")
    page.wait_for_selector('body[data-analysed="true"]')
    assert page.evaluate("history.length") == entries


def test_a_menu_lists_the_games_of_a_file(serve, page, tmp_path):
    open_page(page, serve("hex:3"))
    assert not page.is_visible("#games")
    records = [
        GameRecord("hex:3", ("one", "other"), ("a2", "b2"), (0, 1), 0),
        GameRecord("hex:4", ("", ""), ("a1",), (0,), 0),
        GameRecord("hex:3", ("other", "one"), ("c1", "c1"), (0, 1), 0),
    ]
    file = tmp_path / "games.sgf"
    file.write_text("".join(map(to_text, records)))
    page.set_input_files("#file", file)
    wait_for_ply(page, 2)
    assert page.locator("#games option").all_inner_texts() == ["Game 1: one – other", "Game 2", "Game 3: other – one"]
    page.select_option("#games", "1")
    wait_for_ply(page, 1)
    assert (saved(page)["board"], saved(page)["moves"]) == ("hex:4", ["a1"])
    page.select_option("#games", "2")  # its second move is illegal
    page.wait_for_selector("#toast:has-text('move 2, c1')")
    assert page.input_value("#games") == "1"
    page.select_option("#games", "0")
    wait_for_ply(page, 2)
    page.click("#new")
    wait_for_ply(page, 0)
    assert not page.is_visible("#games")


@pytest.mark.parametrize(
    ("outcome", "forfeit", "status"),
    [
        (1, "resigned", "Bob (blue) resigned: Alice (orange) wins"),
        (-1, "timed out", "Alice (orange) to move. Result in the file: Bob (blue) wins (timed out)"),
        (0, "", "Alice (orange) to move. Result in the file: A draw"),
        (None, "", "Alice (orange) to move"),
    ],
)
def test_a_file_keeps_its_names_and_result_until_a_move_is_added(serve, page, tmp_path, outcome, forfeit, status):
    open_page(page, serve("hex:3"))
    record, file = GameRecord("hex:3", ("Alice", "Bob"), ("a2", "b2"), (0, 1), outcome, forfeit), tmp_path / "game.sgf"
    file.write_text(to_text(record))
    page.set_input_files("#file", file)
    wait_for_ply(page, 2)
    assert (page.inner_text("#status-text"), recorded(page)) == (status, record)
    page.click("#first")
    wait_for_ply(page, 0)
    assert (page.inner_text("#status-text"), recorded(page)) == ("Alice (orange) to move", record)
    page.click("#new")
    page.wait_for_selector("#status-text:text-is('Orange to move')")
    page.go_back()
    page.wait_for_selector("#status-text:text-is('Alice (orange) to move')")
    assert recorded(page) == record
    page.click('.hit[data-name="c3"]')
    wait_for_ply(page, 1)
    assert page.inner_text("#status-text") == "Blue to move"
    assert recorded(page) == GameRecord("hex:3", ("Person", "Person"), ("c3",), (0,), None)


def test_long_names_of_a_file_are_cut_in_the_record(serve, page, tmp_path):
    open_page(page, serve("hex:3"))
    file = tmp_path / "game.sgf"
    file.write_text(to_text(GameRecord("hex:3", ("é" * 50, ""), ("a2",), (0,), None)))
    page.set_input_files("#file", file)
    wait_for_ply(page, 1)
    assert recorded_names(page) == ("é" * MAX_NAME, "")


def test_a_result_by_the_rules_is_shown_beside_that_of_the_file(serve, page, tmp_path):
    open_page(page, serve("hex:3"))
    file = tmp_path / "game.sgf"
    for outcome, status in ((1, "Alice (orange) wins"), (-1, "Alice (orange) wins. Result in the file: Blue wins")):
        file.write_text(
            to_text(GameRecord("hex:3", ("Alice", ""), ("b1", "a1", "b2", "a2", "b3"), (0, 1) * 2 + (0,), outcome))
        )
        page.set_input_files("#file", file)
        page.wait_for_selector(f"#status-text:text-is('{status}')")


def test_the_network_does_not_move_in_a_loaded_game(serve, page, tmp_path):
    open_page(page, serve("hex:3"), "person,network")
    file = tmp_path / "game.sgf"
    file.write_text(to_text(GameRecord("hex:3", ("one", "other"), ("a2",), (0,), 0)))
    page.set_input_files("#file", file)
    wait_for_ply(page, 1)
    assert page.is_checked("#sides label:has-text('Both') input")


def test_files_are_named_after_the_board(serve, page):
    open_page(page, serve("hex:3"))
    for button, name in (("#save", "hex-3.json"), ("#record", "hex-3.sgf")):
        with page.expect_download() as download:
            page.click(button)
        assert download.value.suggested_filename == name
