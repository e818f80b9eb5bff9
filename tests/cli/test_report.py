"""The report of a run: its content, and that it is self-contained."""

import html.parser
import json
import re
import shutil
from pathlib import Path

import pytest

from alphagat.cli import report
from alphagat.config import Config, EvaluationConfig
from alphagat.monitoring.catalogue import PERCENT
from alphagat.monitoring.charts import COLOURS
from alphagat.reporting import writer as report_writer
from alphagat.reporting.comparison import ComparedRun, ComparisonWriter, make_comparison, names_of
from alphagat.reporting.page import has_ended
from alphagat.reporting.writer import PageWriter
from alphagat.runs.checkpoint_writer import CheckpointWriter
from alphagat.runs.manifest import MANIFEST_FILE
from alphagat.runs.metrics import METRICS_FILE, Result
from alphagat.training.state import init_state
from tests.training.tiny import NUM_ITERATIONS, change_config, save_tiny_run, tiny_run

LINES = [
    {
        "iteration": number,
        "board": "hex:2",
        "frames": 64.0 * number,
        "hours": 0.01 * number,
        "train/policy_loss": 2.0 / number,
    }
    for number in range(1, 5)
]
ELO = {"name": "elo", "board": "hex:2", "value": 123.0, "low": 50.0, "high": 190.0}
EVALUATION = {"num_games": 4, "results": [ELO]}
VOID = {"meta", "input", "br", "line", "circle", "rect", "polygon", "polyline", "path", "link"}


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    folder = save_tiny_run(tmp_path_factory.mktemp("report") / "run", 2, 4)
    write_lines(folder, [*LINES[:3], LINES[3] | EVALUATION])
    return folder


@pytest.fixture
def run(made, tmp_path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "a <run>"))


def write_lines(folder: Path, lines: list) -> None:
    (folder / METRICS_FILE).write_text("".join(json.dumps(line) + "\n" for line in lines))


class Balance(html.parser.HTMLParser):
    """Raises AssertionError if elements do not nest; collects the addresses that a browser would load."""

    def __init__(self, text: str):
        super().__init__()
        self.open: list[str] = []
        self.loaded: list[str] = []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.loaded += [str(value) for name, value in attrs if name in ("src", "href", "xlink:href", "data")]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self.open.pop() == tag


def test_the_page_shows_the_run(run, capsys):
    assert report.run(["--workdir", str(run)]) == 0, capsys.readouterr().err
    page = (run / "report.html").read_text()
    assert Balance(page).loaded == []
    assert not re.search(r"@import|url\(", page)
    assert "<title>a &lt;run&gt;: hex:2</title>" in page
    assert f"iteration 4 of {NUM_ITERATIONS}" in page
    assert "<dt>Elo</dt><dd>123<small>(50 to 190)</small>" in page
    assert "<h3>Policy loss</h3>" in page
    assert "The network of iteration 4 with" in page
    assert page.count("hex:2: <em>") == 2
    assert page.count("<span>block ") == 1
    assert "<td>network.width</td><td>8</td><td>64</td>" in page
    assert "Start 1: " in page
    assert "http-equiv" not in page
    assert "evaluated after iteration 4" in page
    assert "<dt>training</dt><dd>2 min 24 s" in page  # 0.04 hours
    assert "its value for orange: 1 wins, -1 loses" in page


def test_the_page_names_the_last_evaluated_iteration(run):
    write_lines(run, [*LINES[:2], LINES[2] | EVALUATION, LINES[3]])
    PageWriter(run, run / "report.html").write()
    page = (run / "report.html").read_text()
    assert f"iteration 4 of {NUM_ITERATIONS}" in page
    assert "evaluated after iteration 3" in page


def test_a_page_that_is_written_again_shows_the_newest_checkpoint_and_config(run):
    writer = PageWriter(run, run / "report.html")
    change_config(run, num_iterations=4)
    assert writer.write()
    with CheckpointWriter(run) as checkpoints:
        checkpoints.save(init_state(tiny_run()), 6)
    change_config(run, num_iterations=40)
    assert not writer.write()
    page = (run / "report.html").read_text()
    assert "iteration 4 of 40" in page
    assert "The network of iteration 6 with" in page


def test_a_run_without_evaluations_ends_with_its_last_checkpoint():
    config = Config(num_iterations=4, evaluation=EvaluationConfig(every=0))
    assert has_ended(config, LINES, [2, 4])
    assert not has_ended(config, LINES, [2])
    assert not has_ended(config, LINES[:3], [4])


def test_the_page_shows_the_machines_of_every_start(run):
    starts = [{"started": "Monday", "devices": ["cpu"]}, {"started": "Friday", "devices": ["H200", "H200", "cpu"]}]
    (run / "env.json").write_text(json.dumps(starts))
    shutil.rmtree(run / "checkpoints")
    PageWriter(run, run / "report.html").write()
    page = (run / "report.html").read_text()
    assert "<details><summary>Start 1: Monday</summary>" in page
    assert "<details open><summary>Start 2: Friday</summary>" in page
    assert "<td>devices</td><td>2 × H200, 1 × cpu</td>" in page


def test_samples_are_of_the_first_two_boards(run, monkeypatch):
    change_config(run, boards=["hex:2", "hex:3", "hex:4"])
    monkeypatch.setattr(report_writer, "load", lambda folder, step, board: f"{board} of {step}")
    monkeypatch.setattr(report_writer, "draw_checkpoint", ", ".join)
    PageWriter(run, run / "report.html").write()
    assert "hex:2 of 4, hex:3 of 4<section>" in (run / "report.html").read_text()


def test_a_damaged_checkpoint_falls_back_to_the_previous_one(run):
    for file in (run / "checkpoints" / "4" / "params").rglob("*"):
        if file.is_file():
            file.write_bytes(b"")
    said = []
    writer = PageWriter(run, run / "report.html", said.append)
    for _ in range(2):
        assert not writer.write()
    assert "The network of iteration 2 with" in (run / "report.html").read_text()
    (line,) = said
    assert line.startswith("the page does not show iteration 4: ")


def test_the_command_says_which_checkpoint_the_page_does_not_show(run, capsys):
    (run / "checkpoints" / "4" / MANIFEST_FILE).write_text("")
    assert report.run([str(run)]) == 0
    assert capsys.readouterr().err.startswith("the page does not show iteration 4: ")


def test_a_checkpoint_that_the_run_deletes_meanwhile_is_not_damaged(run, monkeypatch):
    load = report_writer.load

    def load_late(folder, step, board):
        if step == 4:
            shutil.rmtree(run / "checkpoints" / "4")
        return load(folder, step, board)

    monkeypatch.setattr(report_writer, "load", load_late)
    said = []
    PageWriter(run, run / "report.html", said.append).write()
    assert "The network of iteration 2 with" in (run / "report.html").read_text()
    assert said == []


def test_pictures_are_drawn_once_per_checkpoint(run, monkeypatch):
    drawn = []
    monkeypatch.setattr(report_writer, "load", lambda folder, step, board: step)
    monkeypatch.setattr(report_writer, "draw_checkpoint", lambda agents: drawn.append(agents) or "<p>drawn</p>")
    writer = PageWriter(run, run / "report.html")
    for _ in range(2):
        writer.write()
        assert "<p>drawn</p>" in (run / "report.html").read_text()
    assert drawn == [[4]]


def test_a_run_without_metrics_or_checkpoints_has_a_page(run):
    shutil.rmtree(run / "checkpoints")
    (run / METRICS_FILE).unlink()
    (run / "env.json").unlink()
    assert not PageWriter(run, run / "report.html").write(30)
    page = (run / "report.html").read_text()
    Balance(page)
    assert "No iteration has been written yet." in page
    assert "The run has no checkpoint yet." in page
    assert '<meta http-equiv="refresh" content="30">' in page
    assert not (run / "checkpoints").exists()


@pytest.mark.parametrize("is_damaged", [False, True])
def test_follow_stops_at_the_end_of_the_run(run, monkeypatch, is_damaged):
    last_checkpoint = run / "checkpoints" / str(NUM_ITERATIONS)
    shutil.copytree(run / "checkpoints" / "4", last_checkpoint)
    manifest = json.loads((last_checkpoint / MANIFEST_FILE).read_text()) | {"step": NUM_ITERATIONS}
    (last_checkpoint / MANIFEST_FILE).write_text("" if is_damaged else json.dumps(manifest))
    seen = []
    monkeypatch.setattr("time.sleep", lambda seconds: grow(seconds))

    def grow(seconds):
        assert len(seen) < 3
        seen.append((seconds, "http-equiv" in (run / "report.html").read_text()))
        last = 5 if len(seen) == 1 else NUM_ITERATIONS
        late = EVALUATION if len(seen) == 3 else {}  # as after SIGTERM during the last evaluation
        write_lines(run, [{"iteration": last, "board": "hex:2", "train/policy_loss": 1.0, **late}])

    assert report.run(["--workdir", str(run), "--follow", "7"]) == 0
    assert seen == [(7, True), (7, True), (7, True)]
    assert "http-equiv" not in (run / "report.html").read_text()


def test_only_a_report_is_replaced(run, tmp_path, capsys):
    page = tmp_path / "index.html"
    for _ in range(2):
        assert report.run([str(run), "--out", str(page)]) == 0
    page.write_text("<!doctype html><title>My page</title>")
    capsys.readouterr()
    assert report.run([str(run), "--out", str(page)]) == 2
    assert capsys.readouterr().err == f"error: --out {page} exists and is not a report; name a new file\n"
    assert "My page" in page.read_text()


def test_a_page_in_the_run_folder_that_is_no_report_stays(run, capsys):
    page = run / "report.html"
    page.write_text("<!doctype html><title>My page</title>")
    assert report.run([str(run)]) == 2
    assert capsys.readouterr().err == f"error: {page} exists and is not a report; name a new file with --out\n"
    assert "My page" in page.read_text()


def test_several_runs_are_compared(run, tmp_path, capsys):
    other = Path(shutil.copytree(run, tmp_path / "other"))
    change_config(other, seed=7)
    write_lines(other, [*LINES[:3], {"iteration": 4, "board": "hex:2", "train/grad_norm": 3.0, **EVALUATION}])
    page = tmp_path / "both.html"
    assert report.run([str(run), str(other), "--out", str(page)]) == 0, capsys.readouterr().err
    text = page.read_text()
    assert Balance(text).loaded == []
    assert "<h1>2 runs</h1>" in text
    charts = {title: figure.count("--colour") for title, figure in re.findall("<h3>(.*?)</h3>(.*?)</figure>", text)}
    assert charts == {"Elo": 2, "Policy loss": 2, "Gradient norm": 1}
    (alone,) = re.findall("<h3>Gradient norm</h3>(.*?)</figure>", text)
    assert COLOURS[1] in alone  # the second run keeps its colour where the first has no curve
    assert COLOURS[0] not in alone
    rows = re.findall("<tr>(.*?)</tr>", text)
    assert "<td>seed</td><td>0</td><td>7</td>" in rows
    assert sum("network.width" in row for row in rows) == 0
    assert "<td>other</td><td>4 of" in text


def test_a_comparison_ends_with_the_last_of_its_runs(run, tmp_path):
    other = Path(shutil.copytree(run, tmp_path / "other"))
    writer = ComparisonWriter([run, other], tmp_path / "both.html")
    change_config(run, num_iterations=4)
    assert not writer.write(60)
    assert 'http-equiv="refresh"' in (tmp_path / "both.html").read_text()
    change_config(other, num_iterations=4)
    assert writer.write(60)
    assert 'http-equiv="refresh"' not in (tmp_path / "both.html").read_text()


def compared(name: str, board: str, length: int) -> ComparedRun:
    lines = [{"iteration": number, "board": board, "train/policy_loss": 1.0} for number in range(1, length + 1)]
    return ComparedRun(name, Config(boards=(board,)), lines)


def test_charts_of_a_comparison_are_in_the_order_of_a_report_and_shares_are_percentages():
    results = [Result("elo", "hex:2", 9.0), Result("win_rate", "hex:2", 0.456, opponent="a")]
    line = {"iteration": 4, "board": "hex:2", "train/policy_loss": 1.0, "results": results, "num_games": 2}
    page = make_comparison([compared("one", "hex:2", 3), ComparedRun("two", Config(boards=("hex:2",)), [line])])
    assert re.findall("<h3>(.*?)</h3>", page) == ["Elo", "Score against: a", "Policy loss"]
    (score,) = re.findall("<h3>Score against: a</h3>(.*?)</figure>", page)
    assert f"<b>{PERCENT(0.456)}</b>" in score


def test_a_run_without_elo_says_why():
    elo = {"results": [Result("elo", board, 9.0) for board in ("hex:2", "hex:3")], "num_games": 2}
    other = {"results": [Result("win_rate", "hex:2", 1.0, opponent="previous")], "num_games": 2}

    def row(boards: tuple[str, ...], evaluation: EvaluationConfig, more: dict) -> list[str]:
        rated = ComparedRun("rated", Config(boards=boards), [{"iteration": 1, "board": boards[0], **elo}])
        config = Config(boards=boards, evaluation=evaluation)
        run = ComparedRun("x", config, [{"iteration": 1, "board": boards[0], **more}])
        (found,) = re.findall("<tr><td>x</td><td>1 of [0-9,]*</td>(.*?)</tr>", make_comparison([rated, run]))
        return re.findall("<td>(.*?)</td>", found)

    assert row(("hex:2",), EvaluationConfig(), {}) == ["not evaluated yet"]
    assert row(("hex:2",), EvaluationConfig(every=0), {}) == ["none: no evaluations"]
    assert row(("hex:2",), EvaluationConfig(opponents=()), {}) == ["none: no opponents"]
    assert row(("hex:2", "hex:3"), EvaluationConfig(), {}) == ["not evaluated yet", "not evaluated yet"]
    assert row(("hex:2",), EvaluationConfig(), other) == ["none: no rated opponent", "100%"]


def test_results_name_the_boards_if_the_runs_have_several():
    def rated(name: str, elo: dict[str, float]) -> ComparedRun:
        results = [Result("elo", board, value) for board, value in elo.items()]
        line = {"iteration": 1, "board": "hex:2", "results": results, "num_games": 2}
        return ComparedRun(name, Config(boards=tuple(elo)), [line])

    def table(*runs: ComparedRun) -> list[list[str]]:
        page = make_comparison(runs)
        rows = re.findall("<tr>(.*?)</tr>", page[page.index("Results") :].partition("</table>")[0])
        return [re.findall("<t[hd]>(.*?)</t[hd]>", row)[2:] for row in rows]

    both = rated("both", {"hex:2": 20.0, "hex:3": 30.0})
    assert table(rated("one", {"hex:2": 10.0}), both) == [["hex:2 Elo", "hex:3 Elo"], ["10", ""], ["20", "30"]]
    others = rated("a", {"hex:2": 10.0}), rated("b", {"hex:3": 40.0})
    assert table(*others) == [["hex:2 Elo", "hex:3 Elo"], ["10", ""], ["", "40"]]
    assert table(rated("a", {"hex:2": 10.0}), rated("b", {"hex:2": 40.0})) == [["Elo"], ["10"], ["40"]]


def test_many_runs_share_one_legend():
    for number, is_long in [(6, False), (7, True)]:
        page = make_comparison([compared(f"run_{each}", "hex:2", 3) for each in range(number)])
        (header,) = re.findall('<p class="progress"><span class="legend">(.*?)</p>', page)
        assert re.findall('--colour:(.*?)"', header) == list(COLOURS[:number])
        assert ('<span class="legend long">' in page) == is_long


def test_the_x_axis_ends_with_the_longest_run_of_the_chart():
    page = make_comparison([compared("short", "hex:2", 4), compared("long", "hex:3", 400)])
    ends = {
        title: re.findall('text-anchor="middle">(.*?)<', figure)[-1]
        for title, figure in re.findall("<h3>(.*?)</h3>(.*?)</figure>", page)
    }
    assert ends == {"Policy loss: hex:2": "4", "Policy loss: hex:3": "400"}


def test_runs_of_equal_names_are_told_apart_by_their_paths(run, tmp_path):
    other = Path(shutil.copytree(run, tmp_path / "deeper" / run.name))
    assert names_of([run, other]) == [str(run), str(other)]
    assert names_of([run, tmp_path / "deeper"]) == ["a <run>", "deeper"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--out", "page.txt"], "--out page.txt: end the name with .html"),
        (["--out", "no/page.html"], "there is no folder no; make it first"),
        (["--follow", "0"], "--follow 0: it must be at least 1 and at most 86400"),
        ([], "so empty holds no run"),
        (["empty"], "--workdir empty: empty is already named; name all of them by RUN"),
    ],
)
def test_errors_give_one_line_and_exit_2(tmp_path, monkeypatch, capsys, options, message):
    monkeypatch.chdir(tmp_path)
    Path("empty").mkdir()
    assert report.run(["--workdir", "empty", *options]) == 2
    printed = capsys.readouterr()
    assert (printed.out, printed.err.count("\n")) == ("", 1)
    assert message in printed.err
    assert not list(Path("empty").iterdir())


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        ([], "RUN is missing; name a run, such as runs/quickstart"),
        (["a", "b"], "--out is missing; with several runs, name the page, such as comparison.html"),
        (["a", "b", "--out", "c.html"], "so a holds no run"),
        (["a", "b", "./a", "--out", "c.html"], "RUN a: it is named twice; name it once"),
        (["a", "b/../a", "--out", "c.html"], "RUN b/../a: it is named twice; name it once"),
    ],
)
def test_runs_are_named(tmp_path, monkeypatch, capsys, argv, message):
    monkeypatch.chdir(tmp_path)
    assert report.run(argv) == 2
    assert message in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
