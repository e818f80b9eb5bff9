"""Tests the page in a browser: complete games by mouse and keyboard, annotations and saved games."""

import json
import random

import pytest

from alphagat import games
from alphagat.evaluation.game_files import GameRecord, read_games, to_text
from alphagat.games import make_game
from alphagat.serving.limits import MAX_NAME
from alphagat.serving.playthrough import Playthroughs
from tests.guides import code_of
from tests.serving.untrained import save_untrained
from tests.web.answers import change_answers, give_value

FOOLS_MATE = ("f2f3", "e7e5", "g2g4", "d8h4")


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


def recorded_names(page):
    with page.expect_download() as download:
        page.click("#record")
    (record,) = read_games(download.value.path().read_text())
    return record.names


def replayed(page):
    """Saves the game in the page and replays it."""
    game = saved(page)
    return Playthroughs(make_game(game["board"])).replay(game["seed"], game["moves"])


def resign(page):
    page.click("#resign")
    page.wait_for_selector('body[data-over="true"]')


def other_boards(page):
    """Returns the names of the boards in the menu, without the current one."""
    names = [option.get_attribute("value") for option in page.query_selector_all("#boards option")]
    return [name for name in names if name != page.input_value("#boards")]


def click_any(page, chooser):
    """Plays a random move: clicks a place, then a destination if that selected a piece, or clicks a button."""
    ply = ply_of(page)
    hits = page.query_selector_all("#board .hit") or page.query_selector_all("#choices button")
    chooser.choice(hits).dispatch_event("click")
    if held := page.query_selector("#board .hit.held"):
        goals = [hit for hit in page.query_selector_all("#board .hit") if hit != held]
        chooser.choice([hit for hit in goals if "held" not in (hit.get_attribute("class") or "")]).dispatch_event(
            "click"
        )
    if (
        ply_of(page) == ply
        and page.query_selector("#choices:not([hidden]) button")
        and page.query_selector("#board .hit.held")
    ):
        page.click("#choices button >> nth=0")
    wait_for_ply(page, ply + 1)


@pytest.mark.parametrize(
    "board", ["tic_tac_toe", "hex:3", "mnk:3x4x3:gravity", "othello:4", "breakthrough:5", "2048:2", "pgx:tic_tac_toe"]
)
def test_a_complete_game_by_mouse(serve, page, board):
    open_page(page, serve(board))
    chooser = random.Random(0)
    for _ in range(80):
        if is_over(page):
            break
        click_any(page, chooser)
    game = replayed(page)
    assert game.state.terminated
    assert len(game.steps) == ply_of(page)
    status = page.inner_text("#status-text")
    if board == "2048:2":
        assert f"{game.returns[0]:,.0f} points" in status
    elif game.returns[0] == 0:
        assert status == "A draw"
    else:
        name, _ = make_game(board).player_colours[int(game.returns[1] > 0)]
        assert status == f"{name.capitalize()} wins"
    assert status in page.inner_text("#live")


def test_a_game_of_go_by_mouse(serve, page):
    open_page(page, serve("go:5"))
    for point in ("c3", "b2"):
        page.click(f'.hit[data-name="{point}"]')
        wait_for_ply(page, 1 if point == "c3" else 2)
    for ply in (3, 4):
        page.click("#choices button:text('pass')")
        wait_for_ply(page, ply)
    assert is_over(page)
    assert [step.name for step in replayed(page).steps] == ["c3", "b2", "pass", "pass"]
    assert page.inner_text("#status-text") == "White wins"


def test_a_game_of_chess_by_mouse(serve, page):
    open_page(page, serve("chess"))
    for ply, move in enumerate(FOOLS_MATE):
        page.click(f'.hit[aria-label*="{move[:2]}"] >> nth=0')
        page.click(f'.hit[aria-label^="{move}"]')
        wait_for_ply(page, ply + 1)
    assert page.inner_text("#status-text") == "Black wins"
    assert tuple(step.name for step in replayed(page).steps) == FOOLS_MATE


def test_the_game_of_the_guide_is_played_by_buttons(serve, page, monkeypatch):
    namespace: dict = {"__name__": "kayles"}
    exec(compile(code_of("add_a_game.md", "KaylesGame"), "add_a_game.md", "exec"), namespace)
    monkeypatch.setitem(games.GAMES, "kayles", namespace["make_kayles"])
    open_page(page, serve("kayles:5"))
    for ply, vertex in enumerate(("0", "2")):
        page.click(f"#choices button:text-is('{vertex}')")
        wait_for_ply(page, ply + 1)
    assert page.inner_text("#status-text") == "Blue wins"


def test_the_network_answers_and_moves_are_taken_back(serve, page):
    open_page(page, serve("hex:3"), sides="person,network")
    page.click('.hit[data-name="b2"]')
    wait_for_ply(page, 2)
    assert page.inner_text("#status-text") == "Your move"
    assert len(page.query_selector_all("#moves button")) == 2
    page.click("#back")
    wait_for_ply(page, 0)
    page.click("#forward")
    wait_for_ply(page, 2)
    page.click("#moves button >> nth=0")
    wait_for_ply(page, 1)  # the network does not move in an earlier position
    page.click("#moves button >> nth=1")
    wait_for_ply(page, 2)
    page.click("#back")
    wait_for_ply(page, 0)
    page.click('.hit[data-name="a1"]')
    wait_for_ply(page, 2)
    assert saved(page)["moves"][0] == "a1"


def test_the_winner_is_shown_and_a_new_game_starts(serve, page):
    open_page(page, serve("hex:3"), sides="network,person")
    assert page.inner_text("#goal") == make_game("hex:3").goal
    chooser = random.Random(0)
    for ply in range(1, 9, 2):
        page.wait_for_selector(f'body:is([data-ply="{ply}"], [data-over="true"])')
        if is_over(page):
            break
        assert page.inner_text("#status-text") == "Your move"
        click_any(page, chooser)
    page.wait_for_selector('body[data-over="true"]')
    won = replayed(page).returns[1] > 0
    assert page.inner_text("#status-text") == ("You win" if won else "You lose")
    page.click("#again")
    wait_for_ply(page, 1)
    assert page.is_hidden("#again")
    assert not is_over(page)


def test_moves_are_blocked_until_the_position_is_shown(serve, page):
    open_page(page, serve("hex:3"))
    page.eval_on_selector_all(".hit", "(hits) => hits.forEach((hit) => hit.dispatchEvent(new Event('click')))")
    wait_for_ply(page, 1)
    assert len(saved(page)["moves"]) == 1


@pytest.mark.parametrize("button", ["#last", "#forward"])
def test_a_failed_request_can_be_tried_again(serve, page, button):
    open_page(page, serve("hex:3"))
    page.route("**/api/position", lambda route: route.fulfill(status=500, json={"error": "out of order"}))
    page.click('.hit[data-name="b2"]')
    page.wait_for_selector("#toast:has-text('out of order')")
    page.unroute("**/api/position")
    page.click(button)
    wait_for_ply(page, 1)
    assert saved(page)["moves"] == ["b2"]


def test_a_move_of_the_network_that_failed_can_be_asked_for_again(serve, page):
    open_page(page, serve("hex:3"), sides="person,network")
    page.route("**/api/analysis", lambda route: route.fulfill(status=500, json={"error": "out of order"}))
    page.click('.hit[data-name="b2"]')
    page.wait_for_selector("#toast:has-text('out of order')")
    page.unroute("**/api/analysis")
    page.click("#move-now")
    wait_for_ply(page, 2)


def test_a_move_is_taken_back_before_its_position_arrives(serve, page):
    open_page(page, serve("hex:3"), sides="person,network")
    page.click('.hit[data-name="b2"]')
    wait_for_ply(page, 2)
    page.route("**/api/position", lambda route: None)
    page.click("#board .hit >> nth=0")
    page.unroute("**/api/position")
    page.click("#back")
    page.wait_for_selector("#status-text:text-is('Your move')")
    assert ply_of(page) == 2


def test_a_game_has_a_limited_length(serve, page):
    change_answers(page, "info", {"max_moves": 1})
    open_page(page, serve("hex:3"))
    page.click('.hit[data-name="b2"]')
    wait_for_ply(page, 1)
    page.click('.hit[data-name="a1"]')
    page.wait_for_selector("#toast:has-text('The server replays games of up to 1 moves.')")
    assert saved(page)["moves"] == ["b2"]


def test_without_site_data_the_settings_still_change(serve, page):
    blocked = "{ get() { throw new DOMException('blocked', 'SecurityError'); } }"
    page.add_init_script(f"Object.defineProperty(window, 'localStorage', {blocked})")
    page.goto(serve("hex:3"))
    wait_for_ply(page, 0)
    page.click("#sides label:has-text('Blue')")
    wait_for_ply(page, 1)


@pytest.mark.parametrize(
    "settings", ["null", "[1]", '{"engines": null}', '{"engines": [{}, null], "sides": [3], "source": 1, "swap": "x"}']
)
def test_invalid_settings_are_ignored(serve, page, settings):
    page.add_init_script(f"localStorage.alphagat = {json.dumps(settings)}")
    page.goto(serve("hex:3"))
    wait_for_ply(page, 0)
    assert page.is_checked("#sides label:has-text('Orange') input")
    assert page.is_checked("#source label:has-text('With search') input")
    assert page.get_attribute("#swap", "aria-pressed") == "false"


@pytest.mark.parametrize(("board", "keys"), [("hex:3", ["m"]), ("2048:3", ["ArrowLeft", "ArrowRight", "ArrowUp"])])
def test_the_board_chosen_last_opens_and_nobody_plays_until_then(serve, page, board, keys):
    open_page(page, serve(board))
    first, second, *_ = other_boards(page)
    held, asked = [], []
    page.route("**/api/boards/*", lambda route: held.append(route))
    page.on("request", lambda request: "api/position" in request.url and asked.append(request.post_data_json))
    for name in (first, second):
        with page.expect_request("**/api/boards/*"):
            page.select_option("#boards", name)
    page.wait_for_selector("main[inert]")
    page.evaluate("document.activeElement.blur()")  # a key in the menu chooses a board
    for key in keys:
        page.keyboard.press(key)
    held[1].continue_()
    page.wait_for_selector("main:not([inert])")
    wait_for_ply(page, 0)
    held[0].continue_()
    page.wait_for_timeout(500)  # for the answer about the first board, which comes last
    assert page.input_value("#boards") == second
    assert not any(each["moves"] for each in asked)
    assert replayed(page).steps == ()
    assert saved(page)["board"] == second


def test_a_rejected_board_leaves_the_game_as_it_is(serve, page):
    open_page(page, serve("hex:3"))
    page.click('.hit[data-name="b2"]')
    wait_for_ply(page, 1)
    page.route("**/api/boards/*", lambda route: route.fulfill(status=500, json={"error": "no such board"}))
    page.select_option("#boards", other_boards(page)[0])
    page.wait_for_selector("#toast:not([hidden])")
    assert page.input_value("#boards") == "hex:3"
    assert page.query_selector("main[inert]") is None
    assert len(saved(page)["moves"]) == 1


def test_changing_sides_lets_the_network_move_first(serve, page):
    open_page(page, serve("hex:3"), sides="person,network")
    page.click("#sides label:has-text('Blue')")
    wait_for_ply(page, 1)
    assert page.inner_text("#status-text") == "Your move"
    page.click("#sides label:has-text('Neither')")
    page.wait_for_selector('body[data-over="true"]')
    assert replayed(page).state.terminated


def test_a_complete_game_by_keyboard(serve, page):
    open_page(page, serve("tic_tac_toe"))
    page.focus('.hit[data-name="a3"]')
    focused = "document.activeElement.dataset.name"
    for key, name in (
        ("ArrowRight", "b3"),
        ("ArrowDown", "b2"),
        ("ArrowLeft", "a2"),
        ("ArrowUp", "a3"),
        ("ArrowUp", "a3"),
    ):
        page.keyboard.press(key)
        assert page.evaluate(focused) == name
    page.keyboard.press("Enter")
    wait_for_ply(page, 1)
    assert "Orange plays a3. Blue to move" in page.inner_text("#live")
    page.keyboard.press("u")
    wait_for_ply(page, 0)
    page.keyboard.press("r")
    wait_for_ply(page, 1)
    for ply in range(1, 9):
        if is_over(page):
            break
        assert page.evaluate("document.activeElement.closest('#board') !== null")
        page.keyboard.press("Enter")
        wait_for_ply(page, ply + 1)
    assert replayed(page).state.terminated
    page.keyboard.press("n")
    wait_for_ply(page, 0)
    page.keyboard.press("m")
    wait_for_ply(page, 1)


def test_a_piece_is_selected_and_deselected_by_keyboard(serve, page):
    open_page(page, serve("breakthrough:5"))
    page.focus("#board .hit >> nth=0")
    page.keyboard.press("Enter")
    page.wait_for_selector(".hit.held")
    page.keyboard.press("Escape")
    page.wait_for_selector(".hit.held", state="detached")
    page.keyboard.press("Enter")
    page.wait_for_selector(".hit.held")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    wait_for_ply(page, 1)


def test_arrow_keys_play_2048(serve, page):
    open_page(page, serve("2048:2"))
    for ply in range(3):
        if is_over(page):
            break
        name = page.get_attribute(".hit.arrow >> nth=0", "data-name")
        page.keyboard.press(f"Arrow{name.capitalize()}")
        wait_for_ply(page, ply + 1)
        assert page.inner_text("#moves li:last-child").endswith(name)


def test_only_a_drag_that_begins_on_the_board_plays_2048(serve, page):
    open_page(page, serve("2048:2"))
    box = page.query_selector("#board").bounding_box()
    x, y, outside = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2, (5, 845)
    ways = {"left": (-80, 0), "right": (80, 0), "up": (0, -80), "down": (0, 80)}

    def drag(*places):
        page.mouse.move(*places[0])
        page.mouse.down()
        page.mouse.move(*places[1])
        page.mouse.up()

    right, down = ways[page.get_attribute(".hit.arrow >> nth=0", "data-name")]
    drag((x, y), (x + right, y + down))
    wait_for_ply(page, 1)
    right, down = ways[page.get_attribute(".hit.arrow >> nth=0", "data-name")]
    drag((x, y), outside)
    drag(outside, (x + right, y + down))
    assert len(saved(page)["moves"]) == 1


def test_the_focus_stays_in_lists_that_are_filled_again(serve, page):
    """Otherwise the next arrow key would play a move."""
    open_page(page, serve("2048:2"))
    within = "(list) => document.querySelector(list).contains(document.activeElement)"
    page.focus("#strengths-0 :checked")
    page.keyboard.press("ArrowRight")
    page.wait_for_selector('body[data-analysed="true"]')
    assert page.evaluate(within, "#strengths-0 :has(> :checked)")
    page.focus("#candidates button")
    page.keyboard.press("Enter")
    wait_for_ply(page, 1)
    assert page.evaluate(within, "#candidates")
    page.focus("#moves button")
    page.keyboard.press("Enter")
    page.wait_for_selector('body[data-analysed="true"]')
    assert page.evaluate(within, "#moves")


def test_shows_policy_line_and_attention(serve, page):
    open_page(page, serve("hex:3"))
    assert page.query_selector(".heat .share")
    assert page.query_selector(".line .step")
    assert 1 <= len(page.query_selector_all("#candidates tbody tr")) <= 6
    assert page.inner_text("#candidates .played") == page.inner_text("#line-panel span >> nth=0")
    page.keyboard.press("p")
    page.keyboard.press("l")
    assert not page.query_selector(".heat .share, .line .step")
    page.keyboard.press("a")
    page.wait_for_selector(".attention path")
    overview = len(page.query_selector_all(".attention path"))
    page.hover('.hit[data-name="a1"]')
    page.wait_for_selector(".attention .eye")
    assert len(page.query_selector_all(".attention path")) < overview
    before = page.inner_html(".attention")
    page.click("#blocks label >> nth=0")
    page.click("#heads label:has-text('2')")
    page.hover('.hit[data-name="a1"]')
    assert page.inner_html(".attention") != before
    page.click('.hit[data-name="b2"]')  # a mouse has pointed at it before, so the click plays
    wait_for_ply(page, 1)


EYE = """async (kind) => {
    const { drawAttention } = await import("./overlays.js");
    const attention = { senders: [0], receivers: [0], kinds: [kind], weights: [1] };
    return drawAttention([[10, 60, 20, 100]], attention, 0).at(-1).getAttribute("cy");
}"""


def test_attention_of_a_column_is_drawn_at_its_label(serve, page):
    open_page(page, serve("hex:3"))
    assert [page.evaluate(EYE, kind) for kind in ("column", "direction")] == ["96", "60"]


def test_with_attention_on_a_second_tap_plays(serve, browser):
    context = browser.new_context(viewport={"width": 390, "height": 844}, has_touch=True)
    page = context.new_page()
    open_page(page, serve("hex:3"))
    page.keyboard.press("a")
    page.wait_for_selector(".attention path")
    for cell in ("b2", "a1"):
        page.tap(f'.hit[data-name="{cell}"]')
        page.wait_for_selector(".attention .eye")
        assert ply_of(page) == 0
    page.tap('.hit[data-name="a1"]')
    wait_for_ply(page, 1)
    assert page.inner_text("#moves button") == "a1"
    page.wait_for_selector(".attention path")
    for _ in range(2):
        page.tap('.hit[data-node="0"]')  # a1 is taken, so a second tap does nothing
    assert ply_of(page) == 1
    context.close()


def test_attention_returns_after_a_network_without_it(start, page, tmp_path):
    networks = [save_untrained(tmp_path, "hex:3", name="resnet"), save_untrained(tmp_path, "hex:3")]
    page.add_init_script("localStorage.alphagat ??= JSON.stringify({ sides: ['person', 'person'], attention: true })")
    open_page(page, start(networks, "hex:3"))
    assert not page.query_selector(".attention path")
    page.select_option("#network-0", index=1)
    page.wait_for_selector(".attention path")
    assert page.is_checked("#blocks label >> nth=-1 >> input")


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
    file.write_text(json.dumps({**game, "board": "hex:4"}))
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


def test_a_resigned_game_is_over_and_stays_so(serve, page):
    open_page(page, serve("hex:3"))
    page.click('.hit[data-name="b2"]')
    wait_for_ply(page, 1)
    resign(page)
    assert page.inner_text("#status-text") == "Blue resigned: orange wins"
    assert page.query_selector_all("#board .hit") == []
    assert saved(page)["resigned"] == 1
    page.reload()
    page.wait_for_selector('body[data-over="true"]')
    assert page.inner_text("#status-text") == "Blue resigned: orange wins"
    with page.expect_download() as download:
        page.click("#record")
    assert "RE[B+R]" in download.value.path().read_text()
    page.click("#back")  # takes back the resignation
    wait_for_ply(page, 1)
    assert not is_over(page)
    assert "resigned" not in saved(page)
    resign(page)
    page.click("#first")
    wait_for_ply(page, 0)
    assert not is_over(page)
    with page.expect_download() as download:
        page.click("#record")
    assert "RE[B+R]" in download.value.path().read_text()
    page.click('.hit[data-name="a1"]')
    wait_for_ply(page, 1)
    assert not is_over(page)
    assert "resigned" not in saved(page)


def test_the_value_of_a_review_outlasts_a_resignation(serve, page):
    open_page(page, serve("hex:3"))
    page.click('.hit[data-name="b2"]')
    wait_for_ply(page, 1)
    page.click("#review")
    page.wait_for_selector("#reviewed:not([hidden])")
    before = page.get_attribute("#value", "title")
    page.click("#resign")
    page.wait_for_selector("#value[title*=' 100%']")
    page.click("#back")
    page.wait_for_selector('body[data-over="false"][data-analysed="true"]')
    assert page.get_attribute("#value", "title") == before


def test_a_person_swaps_the_sides_after_the_first_move(serve, page):
    open_page(page, serve("hex:3"), "network,person")
    assert not page.is_visible("#swap-sides")
    page.click("#swap")
    page.eval_on_selector("#swap-sides", "(button) => { button.click(); button.click(); }")
    wait_for_ply(page, 2)  # the network, now blue, answers its own first move
    assert page.inner_text("#status-text") == "Your move"
    assert page.is_checked("#sides label:has-text('Orange') input")
    assert not page.is_visible("#swap-sides")
    page.route("**/api/position", lambda route: None)
    page.click("#first")
    page.click("#swap")  # while no position is on display
    page.unroute("**/api/position")
    page.click("#new")
    wait_for_ply(page, 1)
    assert page.is_checked("#sides label:has-text('Blue') input")


def open_with_swap(page, address, value):
    """Opens Hex for Orange with the swap rule, against a network to which every position has `value`, and plays."""
    give_value(page, value)
    open_page(page, address, "person,network", swap=True)
    page.click('.hit[data-name="b2"]')


def test_a_saved_game_keeps_the_swap(serve, page, tmp_path):
    open_page(page, serve("hex:3"), swap=True)
    page.click('.hit[data-name="b2"]')
    page.click("#swap-sides")
    game = saved(page)
    assert game["isSwapped"]
    page.click("#new")
    wait_for_ply(page, 0)
    (tmp_path / "game.json").write_text(json.dumps(game))
    page.set_input_files("#file", tmp_path / "game.json")
    wait_for_ply(page, 1)
    assert not page.is_visible("#swap-sides")


def test_sides_are_swapped_only_in_the_position_after_the_first_move(serve, page):
    open_page(page, serve("hex:3"), swap=True)
    assert not page.is_visible("#swap-sides")
    page.click('.hit[data-name="b2"]')
    wait_for_ply(page, 1)
    assert page.is_visible("#swap-sides")
    page.click('.hit[data-name="a1"]')
    wait_for_ply(page, 2)
    assert not page.is_visible("#swap-sides")
    page.click("#moves button >> nth=0")
    wait_for_ply(page, 1)
    assert not page.is_visible("#swap-sides")


def test_nobody_swaps_the_sides_after_a_resignation(serve, page):
    open_page(page, serve("hex:3"), swap=True)
    page.click('.hit[data-name="b2"]')
    wait_for_ply(page, 1)
    resign(page)
    assert not page.is_visible("#swap-sides")


def test_the_network_does_not_swap_before_the_first_move(serve, page):
    give_value(page, -0.2)
    page.add_init_script("localStorage.alphagat ??= JSON.stringify({ sides: ['network', 'person'], swap: true })")
    page.goto(serve("hex:3"))
    wait_for_ply(page, 1)
    assert page.is_checked("#sides label:has-text('Blue') input")


@pytest.mark.parametrize(("value", "swaps"), [(-0.2, True), (0.2, False)])
def test_the_network_swaps_if_it_would_lose(serve, page, value, swaps):
    open_with_swap(page, serve("hex:3"), value)
    if swaps:
        page.wait_for_selector("#sides label:has-text('Blue') input:checked")
        wait_for_ply(page, 1)
        assert page.inner_text("#status-text") == "Your move"
    else:
        wait_for_ply(page, 2)
    assert page.is_checked(f"#sides label:has-text('{'Blue' if swaps else 'Orange'}') input")


def test_a_board_with_a_swap_among_its_moves_has_no_second_one(serve, page):
    open_page(page, serve("hex:3:swap"), swap=True)
    assert not page.is_visible("#swap-rule")
    page.click('.hit[data-name="b2"]')
    wait_for_ply(page, 1)
    assert not page.is_visible("#swap-sides")
    assert page.is_visible("#choices button:has-text('swap')")


@pytest.mark.parametrize("reloads", [False, True])
def test_sides_chosen_after_a_swap_hold_in_the_next_game(serve, page, reloads):
    open_with_swap(page, serve("hex:3"), -0.2)
    page.wait_for_selector("#sides label:has-text('Blue') input:checked")
    page.click("#sides label:has-text('Orange')")
    wait_for_ply(page, 2)  # the network, blue again, moves
    if reloads:
        page.reload()
        wait_for_ply(page, 2)
    page.click("#new")
    wait_for_ply(page, 0)
    assert page.is_checked("#sides label:has-text('Orange') input")


def test_another_first_move_takes_a_swap_back(serve, page):
    open_with_swap(page, serve("hex:3"), -0.2)
    page.wait_for_selector("#sides label:has-text('Blue') input:checked")
    wait_for_ply(page, 1)
    page.click("#first")
    wait_for_ply(page, 0)
    page.click('.hit[data-name="a1"]')
    page.wait_for_selector('#moves li:has-text("a1")')
    page.wait_for_selector("#sides label:has-text('Blue') input:checked")  # the network swaps again
    wait_for_ply(page, 1)
    assert saved(page)["moves"] == ["a1"]


@pytest.mark.parametrize("reloads", [False, True])
def test_sides_are_as_chosen_after_a_game_with_a_swap(serve, page, reloads):
    address = serve("hex:3")
    open_with_swap(page, address, -0.2)
    page.wait_for_selector("#sides label:has-text('Blue') input:checked")
    wait_for_ply(page, 1)
    if reloads:
        page.reload()
        wait_for_ply(page, 1)
        page.click("#show-policy")  # stores the settings
    page.goto(address)  # without a game
    wait_for_ply(page, 0)
    assert page.is_checked("#sides label:has-text('Orange') input")


def test_levels_stay_with_their_sides_after_a_swap_and_a_reload(serve, page):
    """Two networks play, the second one swaps, and the first one then moves for blue."""
    page.add_init_script("localStorage.alphagat ??= JSON.stringify({ sides: ['network', 'network'], swap: true })")
    address = serve("hex:3")
    page.route("**/api/analysis", lambda route: None)  # nobody moves until the levels are chosen
    page.goto(address)
    page.click("#strengths-1 label:has-text('Medium')")
    page.unroute("**/api/analysis")
    give_value(page, -0.2)
    page.click("#new")
    page.wait_for_selector('body[data-over="true"]')
    for reloads in (False, True):
        if reloads:
            page.reload()
            page.wait_for_selector('body[data-over="true"]')
        assert page.is_checked("#strengths-0 label:has-text('Medium') input")
        assert not page.is_checked("#strengths-1 label:has-text('Medium') input")
    page.route("**/api/analysis", lambda route: None)
    page.click("#new")
    page.wait_for_selector("#strengths-1 label:has-text('Medium') input:checked")
    assert not page.is_checked("#strengths-0 label:has-text('Medium') input")


def test_two_levels_play_each_other(serve, page):
    page.add_init_script("localStorage.alphagat ??= JSON.stringify({ sides: ['person', 'person'] })")
    page.goto(serve("hex:3"))
    wait_for_ply(page, 0)
    assert not page.is_visible("#engine-1")
    asked = []
    page.on("request", lambda request: "analysis" in request.url and asked.append(request.post_data_json))
    page.click("#sides label:has-text('Neither')")
    page.click("#strengths-1 label:has-text('Medium')")
    page.wait_for_selector('body[data-over="true"]')
    assert page.inner_text("#engine-1-name") == "Level of blue"
    levels = {(len(each["moves"]) % 2, each["simulations"]) for each in asked if len(each["moves"]) > 1}
    assert levels == {(0, 0), (1, 16)}


SHOW_VALUES = """async (values) => {
  const names = [...values.keys()].map((action) => ({ action, name: String(action) }));
  const { showCandidates } = await import("/panels.js");
  showCandidates({ legal: names }, { policy: values.map(() => 0), values, action: 0 }, "policy", () => {});
  return [...document.querySelectorAll("#candidates td:last-child")].map((cell) => cell.textContent);
}"""


def test_a_value_that_rounds_to_zero_has_no_sign(serve, page):
    open_page(page, serve("hex:3"))
    assert page.evaluate(SHOW_VALUES, [0, -0.004, 0.004, -0.006, 0.25]) == ["0.00", "0.00", "0.00", "−0.01", "+0.25"]


def test_boards_have_titles(serve, page):
    open_page(page, serve("hex:3"))
    titles = """async (boards) => { const { title } = await import("/panels.js"); return boards.map(title); }"""
    boards = {"hex:7": "Hex 7 × 7", "tic_tac_toe": "Tic Tac Toe", "hex:5:swap": "Hex 5 × 5 swap"} | {
        "mnk:6x7x4:gravity": "Connect: 4 on 6 × 7",
        "mnk:4x5x3": "In a row: 3 on 4 × 5",
        "tsp:20": "Tour of 20 cities",
    }
    assert page.evaluate(titles, list(boards)) == list(boards.values())


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


def test_preparation_is_announced_and_ends(serve, page):
    """With answers set by hand, because small networks compile too fast to be seen."""
    answers, said = [(False, 3.2), (False, 12.0), (True, 9.0)], []

    def answer(route):
        ready, elapsed = answers[min(len(set(said)), 2)]  # a later call supersedes an earlier one, whose answer is lost
        strengths = [{"simulations": each, "ready": ready, "elapsed": elapsed} for each in (0, 16, 64, 256)]
        route.fulfill(json={"strengths": strengths, "estimate": 8.0})

    page.route("**/api/preparation/*", answer)
    page.expose_function("said", lambda text: said.append(text))
    page.add_init_script(
        "addEventListener('DOMContentLoaded', () => new MutationObserver(() => "
        "said(document.getElementById('preparing').textContent)).observe(document.getElementById('preparing'), "
        "{ childList: true }))"
    )
    page.goto(serve("hex:3"))
    page.wait_for_selector('body[data-prepared="true"]')
    assert list(dict.fromkeys(said))[:2] == [
        "Preparing the network, level Easy: 3 s of about 8 s. This happens once.",
        "Preparing the network, level Easy: 12 s so far. This happens once.",
    ]
    assert not page.is_visible("#preparing")


def test_preparation_is_asked_for_again_after_a_failed_request(serve, page):
    asked = []

    def answer(route):
        asked.append(route)
        if len(asked) == 1:  # of the levels that are not ready
            strengths = [{"simulations": each, "ready": False, "elapsed": 0} for each in (0, 16, 64, 256)]
            route.fulfill(json={"strengths": strengths, "estimate": 8.0})
        elif len(asked) < 5:
            route.fulfill(status=500, json={"error": "out of order"})
        else:
            route.continue_()

    page.route("**/api/preparation/*", answer)
    page.goto(serve("hex:3"))
    page.wait_for_selector('body[data-prepared="true"]')
    assert len(asked) >= 5


def test_the_value_bar_keeps_no_value_of_another_position(serve, page):
    open_page(page, serve("hex:3"))
    page.wait_for_selector("#value[title*=' expects ']")
    page.route("**/api/analysis", lambda route: None)
    page.click('.hit[data-name="b2"]')
    page.wait_for_selector("#value.unknown")
    assert [page.get_attribute("#value", name) for name in ("title", "aria-label")] == ["", "Value"]


def test_a_link_with_a_ply_that_is_no_number_shows_the_last_position(serve, page):
    page.goto(f"{serve('hex:3')}/#board=hex:3&moves=4.0&ply=abc")
    wait_for_ply(page, 2)


def test_a_level_that_failed_is_not_waited_for(serve, page):
    levels = [{"simulations": each, "ready": False, "failed": True, "elapsed": 0} for each in (0, 16, 64, 256)]
    page.route("**/api/preparation/*", lambda route: route.fulfill(json={"strengths": levels, "estimate": 8.0}))
    page.goto(serve("hex:3"))
    page.wait_for_selector('body[data-prepared="true"]')
    assert not page.is_visible("#preparing")


def test_discs_are_counted(serve, page):
    open_page(page, serve("othello:4"))
    assert page.inner_text("#counts").split() == ["Orange", "2", "Blue", "2"]
    page.goto(serve("hex:3"))
    wait_for_ply(page, 0)
    assert not page.is_visible("#counts")


@pytest.mark.parametrize(("width", "scheme"), [(360, "dark"), (1200, "light")])
def test_the_layout_fits_and_controls_have_names(serve, page, width, scheme):
    page.set_viewport_size({"width": width, "height": 740})
    page.emulate_media(color_scheme=scheme)
    open_page(page, serve("hex:3"))
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    buttons = page.query_selector_all("button, [role=button], #boards")
    assert all(each.get_attribute("aria-label") or each.text_content().strip() for each in buttons)
    box = page.query_selector("#board").bounding_box()
    assert box["width"] > 0.6 * min(width, 700)
    page.click("#help-open")
    assert page.is_visible("#help")
    page.keyboard.press("Escape")
    assert not page.is_visible("#help")


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


def test_help_opens_at_its_start(serve, page):
    page.set_viewport_size({"width": 390, "height": 500})
    open_page(page, serve("hex:3"))
    page.click("#help-open")
    assert page.evaluate("document.getElementById('help').scrollTop") == 0
    assert page.evaluate("document.activeElement.id") == "help-title"


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


def test_a_hint_shows_the_move_without_playing_it(serve, page):
    page.add_init_script("localStorage.alphagat = JSON.stringify({ sides: ['person', 'person'], line: false })")
    page.goto(serve("hex:3"))
    wait_for_ply(page, 0)
    assert page.query_selector_all("#board .line *") == []
    page.click("#hint")
    assert page.inner_text("#live").startswith("Hint: ")
    assert len(page.query_selector_all("#board .line > *")) == 1
    assert ply_of(page) == 0
    page.click("#move-now")
    wait_for_ply(page, 1)
    assert page.query_selector_all("#board .line *") == []


def test_a_careless_player_plays_half_of_its_moves_at_random(serve, page):
    page.goto(serve("hex:3"))
    shares = page.evaluate("""async () => {
      const { drawn } = await import("./choice.js"), legal = [0, 1, 2, 3].map((action) => ({ action }));
      return [0.5, undefined].map((carelessness) => {
        const counts = [0, 0, 0, 0];
        for (let number = 0; number < 20000; number += 1) counts[drawn(legal, [0.6, 0.4, 0, 0], carelessness)] += 1;
        return counts.map((count) => count / 20000);
      });
    }""")
    assert shares[0] == pytest.approx([0.425, 0.325, 0.125, 0.125], abs=0.03)
    assert shares[1] == pytest.approx([0.6, 0.4, 0.0, 0.0], abs=0.03)


def test_a_beginner_varies_its_moves(serve, page):
    """The network alone always begins with the same move, a beginner does not."""
    page.add_init_script("localStorage.alphagat = JSON.stringify({ sides: ['network', 'person'] })")
    page.goto(serve("hex:3"))
    wait_for_ply(page, 1)
    firsts = {}
    for level in ("Easy", "Beginner"):
        page.click(f"#strengths-0 label:has-text('{level}')")
        firsts[level] = set()
        for _ in range(6):
            page.click("#new")
            page.wait_for_selector('body[data-ply="0"]')
            wait_for_ply(page, 1)
            firsts[level].add(page.inner_text("#moves button"))
    assert len(firsts["Easy"]) == 1
    assert len(firsts["Beginner"]) > 1


def test_a_review_marks_the_moves_that_give_something_away(serve, page):
    """With values set by hand, because those of an untrained network are all near 0."""
    values = {0: 0.5, 1: 0.5, 2: 0.4, 3: -0.6}  # for the player to move, after so many moves

    def value(asked):
        return {"value": values[len(asked["moves"])] if asked["simulations"] == 64 else -0.2}

    change_answers(page, "analysis", value)
    open_page(page, serve("hex:3"))
    page.click("#strengths-0 label:has-text('Easy')")  # a review has 64 simulations nevertheless
    for ply, cell in enumerate(("a1", "b2", "c3")):
        page.click(f'.hit[data-name="{cell}"]')
        wait_for_ply(page, ply + 1)
    assert page.query_selector_all("#moves .mark, #chart .mark") == []
    page.click("#review")
    page.wait_for_selector("#reviewed:not([hidden])")
    # Orange: from 0.5 to -0.5; blue: from 0.5 to -0.4; orange: from 0.4 to 0.6.
    marks = [(each.inner_text(), each.get_attribute("title")) for each in page.query_selector_all("#moves button")]
    assert [text.removeprefix(name) for (text, _), name in zip(marks, ("a1", "b2", "c3"))] == ["??", "??", ""]
    assert marks[0][1] == "A blunder: gives away 50% of the expected score"
    assert marks[1][1] == "A blunder: gives away 45% of the expected score"
    assert page.inner_text("#summary") == "Orange: 1 × ??. Blue: 1 × ??."
    assert page.inner_text("#verdict") == ""
    assert len(page.query_selector_all("#chart .mark")) == 2
    page.click("#mark-back")
    wait_for_ply(page, 1)
    verdict = page.inner_text("#verdict")
    assert verdict.startswith("A blunder: b2 gives away 45% of the expected score. Better: ")
    assert page.query_selector_all("#board .line > *")  # marks the better move
    page.click("#mark-back")
    wait_for_ply(page, 0)
    assert page.is_disabled("#mark-back")
    # The values of the review stay, although the level of the page has others.
    assert page.get_attribute("#value", "title") == "The network expects 75% for orange"
    page.click('.hit[data-name="c1"]')
    wait_for_ply(page, 1)
    assert page.is_hidden("#reviewed")
    assert page.query_selector_all("#moves .mark") == []


def test_a_resignation_is_that_of_its_side(serve, page):
    open_page(page, serve("hex:3"))
    page.click('.hit[data-name="b2"]')
    wait_for_ply(page, 1)
    resign(page)
    page.click("#sides label:has-text('Orange')")
    page.wait_for_selector("#sides label:has-text('Orange') input:checked")
    page.wait_for_timeout(200)
    assert page.inner_text("#status-text") == "Blue resigned: orange wins"


def test_the_network_does_not_play_while_another_board_opens(serve, page):
    open_page(page, serve("hex:3"), "person,network")
    held = []
    page.route("**/api/analysis", lambda route: held.append(route))
    page.click('.hit[data-name="b2"]')
    page.wait_for_selector('body[data-ply="1"]')
    page.route("**/api/boards/*", lambda route: held.append(route))
    page.select_option("#boards", other_boards(page)[0])
    page.wait_for_selector("main[inert]")
    while len(held) < 2:
        page.wait_for_timeout(20)
    held[0].continue_()
    page.wait_for_timeout(1000)
    assert page.get_attribute("body", "data-ply") == "1"
    page.unroute("**/api/analysis")
    held[1].fulfill(status=500, json={"error": "out of order"})
    wait_for_ply(page, 2)  # the game goes on
    assert page.input_value("#boards") == "hex:3"


def test_a_rejected_link_leaves_the_address_of_the_game(serve, page):
    open_page(page, serve("hex:3"))
    page.evaluate("location.hash = 'board=hex:99&seed=1'")
    page.wait_for_selector("#toast:has-text('does not offer the board hex:99')")
    page.wait_for_url(lambda url: "board=hex%3A3" in url)  # after an answer of the server


def test_an_answer_that_breaks_off_is_reported(serve, page):
    page.route("**/api/analysis", lambda route: route.fulfill(body='{"value": 0.'))
    page.goto(serve("hex:3"))
    page.wait_for_selector("#toast:has-text('The server is not responding')")


def test_the_menu_names_the_board_of_the_game_after_a_rejected_one(serve, page):
    open_page(page, serve("hex:3"))
    for path in ("position", "boards/*"):
        page.route(f"**/api/{path}", lambda route: route.fulfill(status=500, json={"error": "out of order"}))
    page.click('.hit[data-name="b2"]')
    page.wait_for_selector("#toast:has-text('out of order')")
    page.select_option("#boards", other_boards(page)[0])
    page.wait_for_selector("main:not([inert])")
    page.wait_for_timeout(300)
    assert page.input_value("#boards") == "hex:3"


def test_a_person_resigns_on_the_turn_of_the_network(serve, page):
    open_page(page, serve("hex:3"), "person,network")
    page.route("**/api/analysis", lambda route: None)
    page.click('.hit[data-name="b2"]')
    page.wait_for_selector('body[data-ply="1"]')
    resign(page)
    assert page.inner_text("#status-text") == "You resigned: blue wins"


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


def test_the_network_does_not_move_in_a_loaded_game(serve, page, tmp_path):
    open_page(page, serve("hex:3"), "person,network")
    file = tmp_path / "game.sgf"
    file.write_text(to_text(GameRecord("hex:3", ("one", "other"), ("a2",), (0,), 0)))
    page.set_input_files("#file", file)
    wait_for_ply(page, 1)
    assert page.is_checked("#sides label:has-text('Both') input")


def test_an_analysis_is_not_taken_for_that_of_another_board(serve, page):
    """Both games have the same seed and no moves."""
    address, asked = serve("hex:3"), []
    page.on("request", lambda request: "analysis" in request.url and asked.append(request.post_data_json["board"]))
    for board in ("hex:3", "hex:4"):
        page.goto(f"{address}/#board={board}&seed=1")
        page.wait_for_selector(f"#boards option[value='{board}']:checked", state="attached")
        wait_for_ply(page, 0)
    assert asked == ["hex:3", "hex:4"]


def test_a_review_at_a_high_level_has_its_simulations(serve, page):
    asked = []

    def answer(route):
        body = route.request.post_data_json
        asked.append(body["simulations"])
        route.fulfill(response=route.fetch(post_data=body | {"simulations": 0}))  # is faster

    page.route("**/api/analysis", answer)
    open_page(page, serve("hex:3"))
    page.click("#strengths-0 label:has-text('Expert')")
    page.click('.hit[data-name="b2"]')
    wait_for_ply(page, 1)
    page.click("#review")
    page.wait_for_selector("#reviewed:not([hidden])")
    assert set(asked[1:]) == {256}


def test_a_second_click_does_not_start_a_second_review(serve, page):
    asked = []
    page.on("request", lambda request: asked.append(request.post_data_json) if "analysis" in request.url else None)
    open_page(page, serve("hex:3"))
    page.click('.hit[data-name="b2"]')
    wait_for_ply(page, 1)
    page.eval_on_selector("#review", "(button) => { button.click(); button.click(); }")
    page.wait_for_selector("#reviewed:not([hidden])")
    assert [len(each["moves"]) for each in asked if each["simulations"] == 64] == [0, 1]
    page.click('.hit[data-name="a1"]')
    wait_for_ply(page, 2)
    assert page.is_enabled("#review")


def test_no_review_begins_while_the_network_is_to_move(serve, page):
    open_page(page, serve("hex:3"), "person,network")
    page.route("**/api/analysis", lambda route: None)  # the network thinks until the route is removed
    page.click('.hit[data-name="b2"]')
    page.wait_for_selector('body[data-ply="1"]')
    assert page.is_hidden("#review")
    page.unroute("**/api/analysis")
    wait_for_ply(page, 2)
    assert page.is_visible("#review")


def test_another_network_analyses_the_position_anew(start, page, tmp_path):
    networks = [save_untrained(tmp_path, "hex:3", name="resnet"), save_untrained(tmp_path, "hex:3")]
    open_page(page, start(networks, "hex:3"))
    with page.expect_request("**/api/analysis", timeout=10_000) as request:
        page.select_option("#network-0", index=1)
    assert request.value.post_data_json["player"] == networks[1]


SHOW_SHARES = """async (policy) => {
  const names = [...policy.keys()].map((action) => ({ action, name: String(action) }));
  const { showCandidates } = await import("/panels.js");
  showCandidates({ legal: names }, { policy, values: policy.map(() => 0), action: 6 }, "policy", () => {});
  return [...document.querySelectorAll("#candidates tbody tr")].map((row) => row.innerText.split(/\\s+/).slice(0, 2));
}"""


def test_the_candidates_are_the_moves_with_the_largest_shares_and_the_move_to_play(serve, page):
    open_page(page, serve("hex:3"))
    rows = page.evaluate(SHOW_SHARES, [0.15, 0.4, 0.05, 0.2, 0.1, 0.06, 0.04])
    expected = [("1", "40%"), ("3", "20%"), ("0", "15%"), ("4", "10%"), ("5", "6%"), ("6", "4%")]
    assert [tuple(row) for row in rows] == expected


def test_a_click_on_the_chart_shows_the_position_of_its_ply(serve, page):
    open_page(page, serve("hex:3"))
    for ply, cell in enumerate(("a1", "b2", "c3")):
        page.click(f'.hit[data-name="{cell}"]')
        wait_for_ply(page, ply + 1)
    box = page.query_selector("#chart svg").bounding_box()
    for place, ply in ((1, 1), (7, 3), (2, 2)):  # the chart is at least 8 plies wide
        page.mouse.click(box["x"] + box["width"] * place / 8, box["y"] + box["height"] / 2)
        wait_for_ply(page, ply)


def test_the_value_bar_is_filled_by_the_share_of_the_first_player(serve, page):
    give_value(page, 0.5)
    open_page(page, serve("hex:3"))
    share = "document.getElementById('value').style.getPropertyValue('--share')"
    assert (page.evaluate(share), page.inner_text("#value span")) == ("75%", "75")
    page.click('.hit[data-name="b2"]')
    wait_for_ply(page, 1)
    assert (page.evaluate(share), page.inner_text("#value span")) == ("25%", "75")


SHADES = """async () => {
  const { drawAttention } = await import("/overlays.js");
  const nodes = [10, 20, 30].map((x) => [x, 5, 10, 10]), kinds = ["cell", "cell", "cell"];
  const attention = { senders: [0, 1], receivers: [1, 2], kinds, weights: [1, 1] };
  const shades = drawAttention(nodes, attention, 1).filter((each) => each.tagName === "rect");
  return shades.map((each) => each.getAttribute("x"));
}"""


def test_attention_is_drawn_at_the_places_that_a_node_attends_to(serve, page):
    open_page(page, serve("hex:3"))
    assert page.evaluate(SHADES) == ["5"]


def test_the_last_move_is_marked(serve, page):
    open_page(page, serve("hex:3"))
    assert not page.query_selector("#board .last")
    place = page.query_selector('.hit[data-name="b2"]')
    x, y, width, height = (float(place.get_attribute(name)) for name in ("x", "y", "width", "height"))
    place.click()
    wait_for_ply(page, 1)
    mark = page.query_selector("#board .last")
    assert [float(mark.get_attribute(name)) for name in ("cx", "cy")] == pytest.approx([x + width / 2, y + height / 2])


def test_only_a_person_whose_turn_it_is_can_click_the_board_or_resign(serve, page):
    open_page(page, serve("hex:3"), "person,network")
    assert page.is_visible("#resign")
    page.route("**/api/analysis", lambda route: None)
    page.click('.hit[data-name="b2"]')
    page.wait_for_selector('body[data-ply="1"]')
    assert page.query_selector_all("#board .hit") == []
    page.click("#first")
    page.wait_for_selector('body[data-ply="0"]')
    assert len(page.query_selector_all("#board .hit")) == 9
    assert not page.is_visible("#resign")
    page.click("#new")
    page.wait_for_selector("#resign:not([hidden])")
    page.click("#sides label:has-text('Neither')")
    page.wait_for_selector("#resign", state="hidden")


def test_every_setting_is_kept_for_the_next_visit(serve, page):
    address = serve("hex:3")
    open_page(page, address)
    page.click("#strengths-0 label:has-text('Medium')")
    for button, name, value in (
        ("#swap", "swap", True),
        ("#source label:has-text('Network alone')", "source", "prior"),
        ("#show-policy", "policy", False),
        ("#sides label:has-text('Orange')", "sides", ["person", "network"]),
    ):
        page.click(button)
        assert json.loads(page.evaluate("localStorage.alphagat"))[name] == value
    page.goto(address)
    wait_for_ply(page, 0)
    assert page.get_attribute("#show-policy", "aria-pressed") == "false"
    assert page.get_attribute("#swap", "aria-pressed") == "true"
    for choice in ("#strengths-0 label:has-text('Medium')", "#sides label:has-text('Orange')"):
        assert page.is_checked(f"{choice} input")


@pytest.mark.parametrize("is_busy_for", [2, 100])
def test_a_busy_server_is_asked_six_times(serve, page, is_busy_for):
    asked = []

    def answer(route):
        asked.append(route)
        if len(asked) <= is_busy_for:
            route.fulfill(status=503, headers={"Retry-After": "0.01"}, json={"error": "the queue is full; ask again"})
        else:
            route.continue_()

    page.route("**/api/analysis", answer)
    page.goto(serve("hex:3"))
    if is_busy_for == 2:
        wait_for_ply(page, 0)
        assert page.is_hidden("#toast")
    else:
        page.wait_for_selector("#toast:has-text('the queue is full')")
    assert len(asked) == min(is_busy_for + 1, 6)


def test_shares_are_those_of_the_chosen_source(serve, page):
    change_answers(page, "analysis", {"policy": [1.0] + [0.0] * 8, "prior": [0.0] * 8 + [1.0]})
    open_page(page, serve("hex:3"))
    assert not page.is_visible("#source")
    page.click("#strengths-0 label:has-text('Medium')")
    first, *_, last = make_game("hex:3").action_names
    for source, name, other in (("With search", first, last), ("Network alone", last, first)):
        page.click(f"#source label:has-text('{source}')")
        page.wait_for_selector(f"#candidates tr:first-child:has-text('{name}')")
        shares = [page.get_attribute(f'.hit[data-name="{each}"]', "aria-label") for each in (name, other)]
        assert shares == [f"{name}, 100%", f"{other}, 0%"]
        assert len(page.query_selector_all(".heat .share")) == 1


def test_a_beginner_plays_half_of_its_moves_at_random(serve, page):
    """The first of nine moves has the share 1/2 + 1/18 of the draws, and the second one the next 1/18."""
    engine = {"network": "", "simulations": 0, "isBeginner": True}
    settings = {"sides": ["network", "person"], "engines": [engine, engine]}
    page.add_init_script(f"localStorage.alphagat = {json.dumps(json.dumps(settings))}; Math.random = () => 0.6")
    change_answers(page, "analysis", {"prior": [1.0] + [0.0] * 8})
    page.goto(serve("hex:3"))
    wait_for_ply(page, 1)
    assert saved(page)["moves"] == [make_game("hex:3").action_names[1]]


def test_keys_of_the_browser_the_help_and_the_menu_play_nothing(serve, page):
    open_page(page, serve("2048:3"))
    for key in ("Control+m", "Meta+m", "Alt+m", "Control+ArrowLeft", "Control+ArrowUp", "Meta+ArrowRight"):
        page.keyboard.press(key)
    page.focus("#boards")
    page.keyboard.press("m")
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("?")
    for key in ("m", "ArrowLeft", "ArrowUp", "ArrowRight"):
        page.keyboard.press(key)
    page.keyboard.press("Escape")
    assert saved(page)["moves"] == []


def test_a_short_drag_plays_nothing(serve, page):
    open_page(page, serve("2048:3"))
    box = page.query_selector("#board").bounding_box()
    for right, down in ((20, 0), (-20, 0), (0, 20)):
        page.mouse.move(box["x"] + 2, box["y"] + 2)
        page.mouse.down()
        page.mouse.move(box["x"] + 2 + right, box["y"] + 2 + down)
        page.mouse.up()
    assert saved(page)["moves"] == []


def test_files_are_named_after_the_board(serve, page):
    open_page(page, serve("hex:3"))
    for button, name in (("#save", "hex-3.json"), ("#record", "hex-3.sgf")):
        with page.expect_download() as download:
            page.click(button)
        assert download.value.suggested_filename == name


REVIEW = """async () => {
  const { game } = await import("/state.js"), { marks, nearestMark, summary, verdict } = await import("/review.js");
  const costs = [0.41, 0.39, 0.05, 0.21, 0.19, 0.11, 0.09], values = [3];
  for (const cost of costs) values.push(values.at(-1) - 2 * cost);
  const moves = [...costs.keys()], steps = moves.map((action) => ({ action, player: 0, name: `${action}` }));
  Object.assign(game, { moves, steps, values, isReviewed: true, better: moves.map(() => ({ action: 0, name: "0" })) });
  const near = [0, 2, 5].map((cursor) => {
    game.cursor = cursor;
    return [nearestMark(-1), nearestMark(1)];
  });
  const found = marks(), verdicts = [0, 4].map((ply) => verdict(found[ply], ply));
  return [found.map((mark) => mark?.text ?? ""), near, summary([{ name: "white" }]), ...verdicts];
}"""


def test_marks_depend_on_the_share_that_a_move_gives_away(serve, page):
    page.goto(serve("hex:3"))
    wait_for_ply(page, 0)
    marks, near, summary, best, better = page.evaluate(REVIEW)
    assert marks == ["??", "?", "", "?", "?!", "?!", ""]
    assert near == [[None, 1], [1, 3], [4, None]]
    assert summary == "White: 1 × ??, 2 × ?, 2 × ?!."
    assert best == "A blunder: 0 gives away 41% of the expected score."
    assert better == "Doubtful: 4 gives away 19% of the expected score. Better: 0."


def test_the_expected_points_are_those_on_the_board_and_those_to_come(serve, page):
    give_value(page, 1000.0)
    open_page(page, serve("2048:2"))
    chart = "#chart .high"
    assert page.inner_text(chart) == "1,000"
    for ply in range(1, 12):
        page.keyboard.press("m")
        wait_for_ply(page, ply)
        if is_over(page):
            break
        points = int(page.inner_text("#status-text").split()[0].replace(",", ""))
        if points:
            assert page.inner_text(chart) == f"{1000 + points:,}"
            return
    pytest.fail("no tiles merged")


def test_both_levels_are_prepared_if_two_networks_play(serve, page):
    settings = {
        "sides": ["network", "network"],
        "engines": [{"network": "", "simulations": each, "isBeginner": False} for each in (0, 64)],
    }
    page.add_init_script(f"localStorage.alphagat = {json.dumps(json.dumps(settings))}")
    page.route("**/api/analysis", lambda route: None)
    ready = {0: True, 16: True, 64: False, 256: True}
    levels = [{"simulations": each, "ready": ready[each], "failed": False, "elapsed": 0} for each in ready]
    page.route("**/api/preparation/*", lambda route: route.fulfill(json={"strengths": levels, "estimate": 8.2}))
    page.goto(serve("hex:3"))
    text = "Preparing the network, level Hard: about 8 s. This happens once."
    page.wait_for_selector(f"#preparing:text-is('{text}')")
    page.click("#strengths-1 label:has-text('Medium')")
    page.wait_for_selector("#preparing:text-is('Preparing the other levels: 6 of 8 are ready.')")
    page.click("#sides label:has-text('Orange')")
    page.wait_for_selector("#preparing:text-is('Preparing the other levels: 3 of 4 are ready.')")


def test_a_pawn_is_promoted_to_the_chosen_piece(serve, page, tmp_path):
    open_page(page, serve("chess"))
    moves = ["h2h4", "g7g5", "h4g5", "h7h6", "g5h6", "a7a6", "h6h7", "a6a5"]
    file = tmp_path / "game.json"
    file.write_text(json.dumps({"format": "alphagat-game", "board": "chess", "moves": moves}))
    page.set_input_files("#file", file)
    wait_for_ply(page, 8)
    page.click('.hit[aria-label*="h7g8"]')
    page.click('.hit[aria-label*="h7g8"]')
    names = [button.inner_text() for button in page.query_selector_all("#choices button")]
    assert names == ["h7g8q", "h7g8r", "h7g8b", "h7g8n"]
    page.click("#choices button:text-is('h7g8n')")
    wait_for_ply(page, 9)
    assert saved(page)["moves"] == [*moves, "h7g8n"]
    assert page.query_selector("#board .left-from")
