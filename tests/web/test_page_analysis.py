"""What the page shows of the network: policy, value, lines, attention and reviews."""

import pytest

from alphagat.games import make_game
from tests.serving.untrained import save_untrained
from tests.web.answers import change_answers, give_value
from tests.web.pages import is_over, open_page, ply_of, wait_for_ply

EYE = """async (kind) => {
    const { drawAttention } = await import("./overlays.js");
    const attention = { senders: [0], receivers: [0], kinds: [kind], weights: [1] };
    return drawAttention([[10, 60, 20, 100]], attention, 0).at(-1).getAttribute("cy");
}"""


SHOW_VALUES = """async (values) => {
  const names = [...values.keys()].map((action) => ({ action, name: String(action) }));
  const { showCandidates } = await import("/panels.js");
  showCandidates({ legal: names }, { policy: values.map(() => 0), values, action: 0 }, "policy", () => {});
  return [...document.querySelectorAll("#candidates td:last-child")].map((cell) => cell.textContent);
}"""


SHOW_SHARES = """async (policy) => {
  const names = [...policy.keys()].map((action) => ({ action, name: String(action) }));
  const { showCandidates } = await import("/panels.js");
  showCandidates({ legal: names }, { policy, values: policy.map(() => 0), action: 6 }, "policy", () => {});
  return [...document.querySelectorAll("#candidates tbody tr")].map((row) => row.innerText.split(/\\s+/).slice(0, 2));
}"""


SHADES = """async () => {
  const { drawAttention } = await import("/overlays.js");
  const nodes = [10, 20, 30].map((x) => [x, 5, 10, 10]), kinds = ["cell", "cell", "cell"];
  const attention = { senders: [0, 1], receivers: [1, 2], kinds, weights: [1, 1] };
  const shades = drawAttention(nodes, attention, 1).filter((each) => each.tagName === "rect");
  return shades.map((each) => each.getAttribute("x"));
}"""


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


def test_a_value_that_rounds_to_zero_has_no_sign(serve, page):
    open_page(page, serve("hex:3"))
    assert page.evaluate(SHOW_VALUES, [0, -0.004, 0.004, -0.006, 0.25]) == ["0.00", "0.00", "0.00", "−0.01", "+0.25"]


def test_the_value_bar_keeps_no_value_of_another_position(serve, page):
    open_page(page, serve("hex:3"))
    page.wait_for_selector("#value[title*=' expects ']")
    page.route("**/api/analysis", lambda route: None)
    page.click('.hit[data-name="b2"]')
    page.wait_for_selector("#value.unknown")
    assert [page.get_attribute("#value", name) for name in ("title", "aria-label")] == ["", "Value"]


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


def test_a_hint_asked_for_early_is_announced_when_it_arrives(serve, page):
    open_page(page, serve("hex:3"))
    held = []
    page.route("**/api/analysis", lambda route: held.append(route))
    page.click('.hit[data-name="b2"]')
    page.wait_for_selector('body[data-ply="1"]')
    page.click("#hint")
    assert "Hint" not in page.inner_text("#live")
    while not held:
        page.wait_for_timeout(20)
    held[0].continue_()
    wait_for_ply(page, 1)
    assert page.inner_text("#live").startswith("Hint: ")


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


def test_attention_is_drawn_at_the_places_that_a_node_attends_to(serve, page):
    open_page(page, serve("hex:3"))
    assert page.evaluate(SHADES) == ["5"]


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


def test_marks_depend_on_the_share_that_a_move_gives_away(serve, page):
    page.goto(serve("hex:3"))
    wait_for_ply(page, 0)
    marks, near, summary, best, better = page.evaluate(REVIEW)
    assert marks == ["??", "?", "", "?", "?!", "?!", ""]
    assert near == [[None, 1], [1, 3], [4, None]]
    assert summary == "White: 1 × ??, 2 × ?, 2 × ?!."
    assert best == "A blunder: 0 gives away 41% of the expected score."
    assert better == "Dubious: 4 gives away 19% of the expected score. Better: 0."


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
