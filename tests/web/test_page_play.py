"""Complete games by mouse and keyboard, and what the board shows of them."""

import json
import random

import pytest

from alphagat import games
from alphagat.games import make_game
from tests.guides import code_of
from tests.web.answers import change_answers
from tests.web.pages import is_over, open_page, ply_of, replayed, saved, wait_for_ply

FOOLS_MATE = ("f2f3", "e7e5", "g2g4", "d8h4")


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


@pytest.mark.parametrize("end", ["Enter", "Tab", "pause"])
def test_only_the_last_board_chosen_by_keys_opens(serve, page, end):
    page.clock.install()
    open_page(page, serve("hex:3"))
    names = page.eval_on_selector_all("#boards option", "(options) => options.map((each) => each.value)")
    asked = []
    page.on("request", lambda request: asked.append(request.url) if "/api/boards/" in request.url else None)
    page.clock.pause_at(page.evaluate("Date.now()") + 1000)
    page.focus("#boards")
    for _ in range(2):
        page.keyboard.press("ArrowDown")
        page.clock.run_for(400)  # milliseconds
    chosen = page.input_value("#boards")
    assert chosen == names[names.index("hex:3") + 2]
    assert asked == []
    page.clock.run_for(101) if end == "pause" else page.keyboard.press(end)
    page.wait_for_url(lambda url: f"board={chosen.replace(':', '%3A')}" in url)
    assert len(asked) == 1


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


def test_boards_have_titles(serve, page):
    open_page(page, serve("hex:3"))
    titles = """async (boards) => { const { title } = await import("/panels.js"); return boards.map(title); }"""
    boards = {"hex:7": "Hex 7 × 7", "tic_tac_toe": "Tic Tac Toe", "hex:5:swap": "Hex 5 × 5 swap"} | {
        "mnk:5x6x4:gravity": "Connect 4, 5 × 6",
        "mnk:4x5x3": "3 in a row, 4 × 5",
        "tsp:20": "Tour of 20 cities",
    }
    assert page.evaluate(titles, list(boards)) == list(boards.values())


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


def test_help_opens_at_its_start(serve, page):
    page.set_viewport_size({"width": 390, "height": 500})
    open_page(page, serve("hex:3"))
    page.click("#help-open")
    assert page.evaluate("document.getElementById('help').scrollTop") == 0
    assert page.evaluate("document.activeElement.id") == "help-title"


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
