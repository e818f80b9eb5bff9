"""The report of a run: its content, and that it is self-contained."""

import html.parser
import json
import re
import shutil
from pathlib import Path

import pytest

from alphagat.cli import report
from alphagat.reporting.writer import PageWriter
from alphagat.runs.manifest import MANIFEST_FILE
from alphagat.runs.metrics import METRICS_FILE
from tests.training.tiny import NUM_ITERATIONS, save_tiny_run

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
    assert "<dt>Elo</dt><dd>123<small>[50, 190]</small>" in page
    assert "<h3>Policy loss</h3>" in page
    assert "The network of iteration 4 with" in page
    assert page.count("hex:2: <em>") == 2
    assert page.count("<span>block ") == 1
    assert "<td>network.width</td><td>8</td><td>64</td>" in page
    assert "Start 1: " in page
    assert "http-equiv" not in page


def test_a_damaged_checkpoint_falls_back_to_the_previous_one(run):
    for file in (run / "checkpoints" / "4" / "params").rglob("*"):
        if file.is_file():
            file.write_bytes(b"")
    writer = PageWriter(run, run / "report.html")
    assert not writer.write()
    assert "The network of iteration 2 with" in (run / "report.html").read_text()


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
        assert len(seen) < 2
        seen.append((seconds, "http-equiv" in (run / "report.html").read_text()))
        last = NUM_ITERATIONS if len(seen) == 2 else 5
        write_lines(run, [{"iteration": last, "board": "hex:2", "train/policy_loss": 1.0}])

    assert report.run(["--workdir", str(run), "--follow", "7"]) == 0
    assert seen == [(7, True), (7, True)]
    assert "http-equiv" not in (run / "report.html").read_text()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--out", "page.txt"], "--out page.txt: end the name with .html"),
        (["--out", "no/page.html"], "there is no folder no; make it first"),
        (["--follow", "0"], "--follow 0: it must be at least 1 and at most 86400"),
        ([], "so empty holds no run"),
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
