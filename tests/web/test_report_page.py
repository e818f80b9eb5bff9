"""Tests the report of a run in a browser: games to click through, charts to enlarge."""

import json

from alphagat.reporting.writer import PageWriter
from alphagat.runs.metrics import METRICS_FILE
from tests.training.tiny import save_tiny_run

LINE = {
    "iteration": 1,
    "board": "hex:2",
    "frames": 64.0,
    "hours": 0.01,
    "train/policy_loss": 2.0,
    "train/value_loss": 1.0,
}


def test_a_game_is_clicked_through(page, tmp_path):
    run = save_tiny_run(tmp_path / "run", 1)
    PageWriter(run, tmp_path / "report.html").write()
    page.goto((tmp_path / "report.html").as_uri())
    game = page.query_selector(".game")
    overview = [each.inner_text() for each in game.query_selector_all(".boards figcaption")]

    def shown():
        return game.query_selector(".shown figcaption").inner_text()

    def marked():
        return [each.inner_text() for each in game.query_selector_all(".boards .current figcaption")]

    assert (shown(), marked()) == (overview[0], [overview[0]])
    game.query_selector("button:text('›')").click()
    assert (shown(), marked()) == (overview[1], [overview[1]])
    for _ in range(len(overview)):
        game.query_selector("button:text('›')").click()
    assert shown() == overview[-1]
    game.query_selector("button:text('‹')").click()
    assert shown() == overview[-2]
    game.query_selector(".boards figure").click()
    assert shown() == overview[0]
    game.query_selector("input").fill("1")
    assert shown() == overview[1]


def test_a_chart_is_enlarged_by_mouse_and_keyboard(page, tmp_path):
    run = save_tiny_run(tmp_path / "run", 1)
    (run / METRICS_FILE).write_text(json.dumps(LINE))
    PageWriter(run, tmp_path / "report.html").write()
    page.goto((tmp_path / "report.html").as_uri())
    chart, other = page.query_selector_all(".charts figure")[:2]
    small = chart.bounding_box()["width"]
    chart.query_selector("h3").click()
    assert chart.bounding_box()["width"] > 2 * small
    assert other.bounding_box()["width"] == small
    chart.press("Enter")
    assert chart.bounding_box()["width"] == small


def test_a_run_without_frames_has_no_axis_of_frames(page, tmp_path):
    run = save_tiny_run(tmp_path / "run", 1)
    (run / METRICS_FILE).write_text(json.dumps({name: value for name, value in LINE.items() if name != "frames"}))
    PageWriter(run, tmp_path / "report.html").write()
    page.add_init_script("sessionStorage.axis = 'frames'")  # kept from another report
    page.goto((tmp_path / "report.html").as_uri())
    assert page.inner_text(".axes").split() == ["iterations", "hours"]
    assert page.is_visible(".charts svg.iterations >> nth=0")
    page.click(".axes label:has-text('hours')")
    assert page.is_visible(".charts svg.hours >> nth=0")
    assert page.evaluate("sessionStorage.axis") == "hours"


def test_games_are_clicked_through_without_site_data(page, tmp_path):
    """As in the sandboxed frames in which some servers show files of a build."""
    run = save_tiny_run(tmp_path / "run", 1)
    PageWriter(run, tmp_path / "report.html").write()
    blocked = "{ get() { throw new DOMException('blocked', 'SecurityError'); } }"
    page.add_init_script(f"Object.defineProperty(window, 'sessionStorage', {blocked})")
    page.goto((tmp_path / "report.html").as_uri())
    assert page.is_visible(".viewer")
