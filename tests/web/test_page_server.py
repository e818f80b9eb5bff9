"""Answers of the server that come late, fail or are refused."""

import pytest

from tests.web.pages import open_page, replayed, saved, wait_for_ply


def other_boards(page):
    """Returns the names of the boards in the menu, without the current one."""
    names = [option.get_attribute("value") for option in page.query_selector_all("#boards option")]
    return [name for name in names if name != page.input_value("#boards")]


@pytest.mark.parametrize("button", ["#last", "#forward"])
def test_a_failed_request_can_be_tried_again(serve, page, button):
    open_page(page, serve("hex:3"))
    page.route("**/api/position", lambda route: route.fulfill(status=500, json={"error": "out of order"}))
    page.click('.hit[data-name="b2"]')
    page.wait_for_selector("#toast:has-text('out of order')")
    assert page.inner_text("#status-text") == "No answer. Press Forward to try again."
    page.unroute("**/api/position")
    page.click(button)
    wait_for_ply(page, 1)
    assert saved(page)["moves"] == ["b2"]


@pytest.mark.parametrize("button", ["#move-now", "#hint"])
def test_a_move_of_the_network_that_failed_can_be_asked_for_again(serve, page, button):
    open_page(page, serve("hex:3"), sides="person,network")
    page.route("**/api/analysis", lambda route: route.fulfill(status=500, json={"error": "out of order"}))
    page.click('.hit[data-name="b2"]')
    page.wait_for_selector("#toast:has-text('out of order')")
    assert page.inner_text("#status-text") == "No answer. Press Move for me to try again."
    assert not page.query_selector("#dot.busy")
    page.unroute("**/api/analysis")
    page.click(button)
    wait_for_ply(page, 2)


def test_a_failed_analysis_leaves_the_turn_of_a_person(serve, page):
    page.route("**/api/analysis", lambda route: route.fulfill(status=500, json={"error": "out of order"}))
    page.goto(serve("hex:3"))
    page.wait_for_selector("#toast:has-text('out of order')")
    assert page.inner_text("#status-text") == "Your move"
    page.unroute("**/api/analysis")
    page.click("#hint")
    wait_for_ply(page, 0)
    assert len(page.query_selector_all("#board .line > *")) == 1


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
    announced = []
    page.expose_function("announced", lambda text: announced.append(text))
    page.add_init_script(
        "addEventListener('DOMContentLoaded', () => { const live = document.getElementById('live'); "
        "new MutationObserver(() => announced(live.textContent)).observe(live, { childList: true }); })"
    )
    page.goto(serve("hex:3"))
    page.wait_for_selector('body[data-prepared="true"]')
    assert list(dict.fromkeys(said))[:2] == [
        "Preparing the network, level Easy: 3 s of about 8 s. This happens once.",
        "Preparing the network, level Easy: 12 s so far. This happens once.",
    ]
    assert not page.is_visible("#preparing")
    while "The preparation has ended." not in announced:
        page.wait_for_timeout(20)
    assert sum("Preparing" in text for text in announced) == 1


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


def test_a_level_that_failed_is_not_waited_for(serve, page):
    levels = [{"simulations": each, "ready": False, "failed": True, "elapsed": 0} for each in (0, 16, 64, 256)]
    page.route("**/api/preparation/*", lambda route: route.fulfill(json={"strengths": levels, "estimate": 8.0}))
    page.goto(serve("hex:3"))
    page.wait_for_selector('body[data-prepared="true"]')
    assert not page.is_visible("#preparing")


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


@pytest.mark.parametrize("is_busy_for", [2, 100])
def test_a_busy_server_is_asked_six_times(serve, page, is_busy_for):
    asked = []

    def answer(route):
        asked.append(route)
        if len(asked) <= is_busy_for:
            route.fulfill(status=503, headers={"Retry-After": "0.01"}, json={"error": "the queue is full; try again"})
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
