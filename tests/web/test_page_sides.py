"""Who plays which side: the swap, resignations, levels and settings."""

import json

import pytest

from tests.web.answers import give_value
from tests.web.pages import is_over, open_page, replayed, resign, saved, wait_for_ply


def open_with_swap(page, address, value):
    """Opens Hex for Orange with the swap rule, against a network to which every position has `value`, and plays."""
    give_value(page, value)
    open_page(page, address, "person,network", swap=True)
    page.click('.hit[data-name="b2"]')


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


def test_changing_sides_lets_the_network_move_first(serve, page):
    open_page(page, serve("hex:3"), sides="person,network")
    page.click("#sides label:has-text('Blue')")
    wait_for_ply(page, 1)
    assert page.inner_text("#status-text") == "Your move"
    page.click("#sides label:has-text('Neither')")
    page.wait_for_selector('body[data-over="true"]')
    assert replayed(page).state.terminated


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


def test_a_resignation_is_that_of_its_side(serve, page):
    open_page(page, serve("hex:3"))
    page.click('.hit[data-name="b2"]')
    wait_for_ply(page, 1)
    resign(page)
    page.click("#sides label:has-text('Orange')")
    page.wait_for_selector("#sides label:has-text('Orange') input:checked")
    page.wait_for_timeout(200)
    assert page.inner_text("#status-text") == "Blue resigned: orange wins"


def test_a_person_resigns_on_the_turn_of_the_network(serve, page):
    open_page(page, serve("hex:3"), "person,network")
    page.route("**/api/analysis", lambda route: None)
    page.click('.hit[data-name="b2"]')
    page.wait_for_selector('body[data-ply="1"]')
    resign(page)
    assert page.inner_text("#status-text") == "You resigned: blue wins"


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
