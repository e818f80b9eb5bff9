"""Tests the live view of a run in a browser."""

import os
import time

from alphagat.runs.checkpoint_writer import CheckpointWriter
from alphagat.runs.metrics import METRICS_FILE, MetricsWriter, Result
from alphagat.training.state import init_state
from tests.serving.untrained import save_untrained
from tests.training.tiny import save_tiny_run, tiny_run
from tests.web.answers import change_answers, give_value
from tests.web.conftest import PATIENCE_MS


def write_metrics(folder, iterations):
    with MetricsWriter(folder, restored_iteration=iterations.start - 1) as writer:
        for iteration in iterations:
            line = {"board": "hex:2", "frames": 10 * iteration, "hours": iteration / 100, "train/policy_loss": 2.5}
            if iteration % 2 == 0:
                line |= {"num_games": 4, "results": [Result("elo", "hex:2", 100.0 * iteration, 0.0, 900.0)]}
            writer.write(iteration, line)


def test_a_run_is_watched_while_it_goes_on(start, page, tmp_path):
    folder = save_tiny_run(tmp_path / "mine", 1)
    write_metrics(folder, range(1, 3))
    page.goto(f"{start([str(folder)], folder=folder)}/watch.html")
    page.wait_for_selector("body[data-ply]")
    assert page.inner_text("#name") == "mine"
    assert page.inner_text("#progress-text").startswith("Iteration 2 of ")
    assert "network of iteration 1" in page.inner_text("#status-text")
    assert [each.inner_text() for each in page.query_selector_all("#charts h3")] == ["Elo", "Policy loss"]
    page.wait_for_selector("#charts svg.iterations circle")
    page.click("#axis label:has-text('Hours')")
    page.wait_for_selector("#charts svg.hours")
    page.wait_for_selector(".attention path")
    page.click("#show-attention")
    page.wait_for_selector(".attention path", state="detached")
    page.click("#show-policy")
    page.wait_for_selector(".share")
    # The run goes on.
    with CheckpointWriter(folder) as writer:
        writer.save(init_state(tiny_run()), 2)
    write_metrics(folder, range(3, 5))
    page.wait_for_selector('body[data-network="2"]')
    assert page.inner_text("#progress-text").startswith("Iteration 4 of ")
    page.click("#next")
    page.wait_for_selector("#status-text:has-text('network of iteration 2')")
    # The run is killed.
    long_ago = time.time() - 200
    os.utime(folder / METRICS_FILE, (long_ago, long_ago))
    page.wait_for_selector("#progress-text:has-text('nothing new for 3 min')")


def test_a_run_without_frames_has_no_axis_of_frames(start, page, tmp_path):
    folder = save_tiny_run(tmp_path / "mine", 1)
    with MetricsWriter(folder, restored_iteration=0) as writer:
        writer.write(1, {"board": "hex:2", "hours": 0.01, "train/policy_loss": 2.5})
    page.goto(f"{start([str(folder)], folder=folder)}/watch.html")
    page.wait_for_selector("#charts svg.iterations")
    assert page.inner_text("#axis").split() == ["Iterations", "Hours"]


def test_games_follow_one_another_and_can_be_paused(start, page, tmp_path):
    folder = save_tiny_run(tmp_path / "run", 1)
    page.goto(f"{start([str(folder)], folder=folder)}/watch.html")
    page.click("#speed label:has-text('Fast')")
    page.wait_for_selector("#status-text:has-text('wins')")  # Hex has no draws
    page.wait_for_selector('body[data-ply="1"]')  # of the next game
    page.wait_for_selector('body[data-ply="2"]')
    page.click("#moves button >> nth=0")
    page.wait_for_selector("#moves li:first-child [aria-current]")
    assert page.inner_text("#pause") == "Resume"
    moves = len(page.query_selector_all("#moves button"))
    page.wait_for_timeout(600)  # four moves, were the game not paused
    assert len(page.query_selector_all("#moves button")) == moves
    page.route("**/api/position", lambda route: route.fulfill(status=500, json={"error": "out of order"}))
    page.click("#moves button >> nth=1")
    page.wait_for_selector("#toast:has-text('out of order')")
    page.unroute("**/api/position")
    page.click("#pause")
    page.wait_for_selector("#status-text:has-text('wins')")


def hold(page, address, is_held):
    """Holds back the answers after a number of plies that fulfils `is_held`; returns the functions that send them."""
    held = []

    def handle(route):
        response = route.fetch()
        if is_held(len(route.request.post_data_json["moves"])):
            held.append(lambda: route.fulfill(response=response))
        else:
            route.fulfill(response=response)

    page.route(f"**/api/{address}", handle)
    return held


def wait_for_number(page, held, number):
    deadline = time.monotonic() + PATIENCE_MS / 1000
    while len(held) < number:
        assert time.monotonic() < deadline
        page.wait_for_timeout(20)


def place(page):
    page.wait_for_timeout(100)  # for the page to read an answer
    return page.inner_text("#chart .place")


def test_late_answers_do_not_replace_what_is_shown(start, page, tmp_path):
    folder = save_tiny_run(tmp_path / "run", 1)
    held = hold(page, "position", lambda plies: plies in (3, 6))
    page.goto(start([str(folder)], "hex:4", folder) + "/watch.html")
    page.click("#speed label:has-text('Fast')")
    wait_for_number(page, held, 1)
    held[0]()
    # A person looks back while the newest position is on its way, and then at one move after another.
    wait_for_number(page, held, 2)
    page.click("#moves button >> nth=0")
    page.wait_for_selector("#moves li:first-child [aria-current]")
    held[1]()
    page.wait_for_selector('body[data-ply="6"]')
    assert place(page) == "move 1 of 6"
    page.click("#moves button >> nth=2")
    wait_for_number(page, held, 3)
    page.click("#moves button >> nth=1")
    page.wait_for_selector("#moves li:nth-child(2) [aria-current]")
    held[2]()
    assert place(page) == "move 2 of 6"
    # The next game begins.
    page.click("#moves button >> nth=2")
    wait_for_number(page, held, 4)
    page.click("#next")
    wait_for_number(page, held, 6)  # the last position of this game, and move 3 of the next
    held[3]()
    assert place(page) == "move 2 of 2"
    assert len(page.query_selector_all("#moves button")) == 2


def test_a_late_value_counts_the_points_of_its_own_position(start, page, tmp_path):
    change_answers(page, "position", lambda asked: {"points": 10 * len(asked["moves"])})
    give_value(page, 0)
    folder = save_tiny_run(tmp_path / "run", 1)
    page.goto(start([save_untrained(tmp_path, "2048:3")], "2048:3", folder) + "/watch.html")
    page.click("#speed label:has-text('Fast')")
    page.wait_for_selector('body[data-ply="2"]')
    held = hold(page, "attention", lambda plies: plies == 8)  # the value needs both answers
    wait_for_number(page, held, 1)
    page.click("#moves button >> nth=0")
    page.wait_for_selector("#moves li:first-child [aria-current]")
    held[0]()
    page.wait_for_timeout(100)  # for the page to read the answer
    assert page.inner_text("#chart .high") == "80"


def test_a_move_chosen_while_the_game_goes_on_stays(start, page, tmp_path):
    """After Resume, the analysis of the newest position is on its way when a person looks back again."""
    folder = save_tiny_run(tmp_path / "run", 1)
    page.goto(start([str(folder)], "hex:4", folder) + "/watch.html")
    page.wait_for_selector('body[data-ply="2"]')
    page.click("#moves button >> nth=0")
    page.wait_for_selector("#moves li:first-child [aria-current]")
    held = hold(page, "analysis", lambda plies: plies > 1)
    page.click("#pause")
    wait_for_number(page, held, 2)  # for display, and for the next move
    page.click("#moves button >> nth=0")
    page.wait_for_selector("#moves li:first-child [aria-current]")
    for release in held:
        release()
    page.wait_for_timeout(600)  # the game would go on at once
    assert place(page).startswith("move 1 of")


def test_the_layout_fits_a_phone(start, page, tmp_path):
    folder = save_tiny_run(tmp_path / "run", 1)
    write_metrics(folder, range(1, 3))
    page.set_viewport_size({"width": 360, "height": 740})
    page.goto(f"{start([str(folder)], folder=folder)}/watch.html")
    page.wait_for_selector("#charts figure")
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    page.keyboard.press("ArrowDown")
    page.wait_for_timeout(500)
    assert page.evaluate("scrollY") > 0


def test_a_slow_answer_is_not_announced_after_it_has_arrived(start, page, tmp_path):
    folder = save_tiny_run(tmp_path / "run", 1)
    held = hold(page, "analysis", lambda plies: plies == 1)
    asked = []
    page.route("**/api/preparation/*", lambda route: asked.append(route))
    page.goto(start([str(folder)], "hex:4", folder) + "/watch.html")
    wait_for_number(page, held, 1)
    page.click("#pause")
    wait_for_number(page, asked, 1)
    for each in held:
        each()
    page.wait_for_timeout(200)
    asked[0].continue_()
    page.wait_for_timeout(500)
    assert page.is_hidden("#preparing")


def test_values_are_those_of_the_first_player(start, page, tmp_path):
    give_value(page, 0.5)
    folder = save_tiny_run(tmp_path / "run", 1)
    page.goto(start([str(folder)], "hex:4", folder) + "/watch.html")
    page.wait_for_selector('body[data-ply="2"]')
    page.click("#moves button >> nth=0")
    page.wait_for_selector("#value[title='The network expects 25% for orange']")
    page.click("#moves button >> nth=1")
    page.wait_for_selector("#value[title='The network expects 75% for orange']")


def test_games_are_played_on_the_boards_of_the_run_in_turn(start, page, tmp_path):
    folder = save_tiny_run(tmp_path / "run", 1)
    change_answers(page, "run", {"boards": ["hex:2", "hex:3"]})
    page.goto(start([str(folder)], folder=folder) + "/watch.html")
    for title in ("Hex 2 × 2", "Hex 3 × 3", "Hex 2 × 2"):
        page.wait_for_selector(f"#status-text:has-text('{title}: network')")
        page.click("#next")


def test_a_game_that_failed_begins_again_after_a_pause_on_the_same_board(start, page, tmp_path):
    folder = save_tiny_run(tmp_path / "run", 1)
    change_answers(page, "run", {"boards": ["hex:2", "hex:3"]})
    asked = []

    def refuse(route):
        asked.append(route.request.url.rpartition("/")[2])
        route.fulfill(status=500, json={"error": "out of order"})

    page.clock.install()
    page.route("**/api/boards/*", refuse)
    page.goto(start([str(folder)], folder=folder) + "/watch.html")
    page.wait_for_selector("#toast:has-text('out of order')")
    page.clock.pause_at(page.evaluate("Date.now()") + 1000)
    number = len(asked)
    for _ in range(10):
        page.clock.run_for(150)
        page.wait_for_timeout(50)  # for the requests of a page that does not wait
    assert len(asked) <= number + 1
    page.unroute("**/api/boards/*")
    page.clock.resume()
    page.wait_for_selector("#status-text:has-text('Hex 2 × 2: network')")
    page.wait_for_selector("#toast", state="hidden")
    assert set(asked) == {"hex%3A2"}


def test_a_message_stays_until_its_own_cause_is_gone(start, page, tmp_path):
    """So the page says all the time that the run was started anew, while it goes on with games of the old network."""
    folder = save_tiny_run(tmp_path / "run", 1)
    page.goto(start([str(folder)], "hex:4", folder) + "/watch.html")
    page.click("#speed label:has-text('Fast')")
    page.wait_for_selector('body[data-ply="1"]')
    page.route("**/api/run", lambda route: route.fulfill(status=500, json={"error": "another network now"}))
    page.wait_for_selector("#toast:has-text('another network now')")
    ply = int(page.get_attribute("body", "data-ply"))
    page.wait_for_selector(f'body:not([data-ply="{ply}"])')
    assert page.is_visible("#toast:has-text('another network now')")
    page.unroute("**/api/run")
    page.wait_for_selector("#toast", state="hidden")


def test_the_first_six_moves_are_drawn_from_the_policy(start, page, tmp_path):
    page.add_init_script("Math.random = () => 0")  # draws the first legal move
    folder = save_tiny_run(tmp_path / "run", 1)
    page.goto(start([str(folder)], "hex:4", folder) + "/watch.html")
    page.click("#speed label:has-text('Fast')")
    page.wait_for_selector('body[data-ply="7"]')
    page.click("#pause")
    assert [each.inner_text() for each in page.query_selector_all("#moves button")][:6] == [
        *("a1", "b1", "c1", "d1", "a2", "b2"),
    ]
