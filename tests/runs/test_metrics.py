"""One line per iteration, also after a crash and a resume, in the JSON file and for TensorBoard."""

import io
import json
import math
import os
import time
from pathlib import Path

import matplotlib.image
import numpy as np
import pytest
from tensorboardX.proto.event_pb2 import SessionLog
from tensorboardX.proto.plugin_hparams_pb2 import HParamsPluginData

from alphagat.errors import UserError
from alphagat.runs import metrics
from alphagat.runs.metrics import (
    METRICS_FILE,
    TENSORBOARD_FOLDER,
    MetricsWriter,
    Result,
    last_evaluation,
    read_metrics,
    tagged,
)
from tests.fuzz import mutants
from tests.runs.event_files import events

EXPERIMENT = [f"_hparams_/{name}" for name in ("experiment", "session_start_info", "session_end_info")]
RESULTS = [
    Result("win_rate", "hex:5", 0.1 + 0.2, 0.25, 1 / 3, "random"),
    Result("elo", "hex:5", -12.5),
    Result("holdout/policy_loss", "hex:5", math.nan),
]


def scalars(folder: Path) -> list[tuple[int, str, float]]:
    return [(event.step, value.tag, value.simple_value) for event in events(folder) for value in event.summary.value]


def write(folder: Path, first: int, last: int, restored_iteration: int = 0) -> None:
    with MetricsWriter(folder, restored_iteration=restored_iteration) as writer:
        for iteration in range(first, last + 1):
            writer.write(iteration, {"iteration": iteration, "board": "hex:5", "train/policy_loss": 1 / iteration})


def test_both_files_hold_every_iteration(tmp_path: Path):
    write(tmp_path, 1, 4)
    assert read_metrics(tmp_path) == [
        {"iteration": i, "board": "hex:5", "train/policy_loss": 1 / i} for i in (1, 2, 3, 4)
    ]
    assert [(step, tag) for step, tag, _ in scalars(tmp_path)] == [(i, "train/policy_loss") for i in (1, 2, 3, 4)]
    assert scalars(tmp_path)[3][2] == 0.25


def test_points_of_tensorboard_have_the_time_of_writing(tmp_path: Path):
    start = time.time()
    write(tmp_path, 1, 2)
    assert all(start <= event.wall_time <= time.time() for event in events(tmp_path))


def test_a_game_is_a_picture(tmp_path: Path):
    """Its pixels have the colours of the drawing, on white."""
    with MetricsWriter(tmp_path) as writer:
        square = '<rect x="0" y="0" width="10" height="20" fill="#ff0000"/>'
        drawing = f'<svg xmlns="http://www.w3.org/2000/svg" width="30" height="20">{square}</svg>'
        writer.draw_game(3, "hex:5", drawing)
    step, value = next((event.step, value) for event in events(tmp_path) for value in event.summary.value)
    assert (step, value.tag, value.image.width, value.image.height) == (3, "games/hex:5", 30, 20)
    pixels = matplotlib.image.imread(io.BytesIO(value.image.encoded_image_string))
    assert pixels.shape == (20, 30, value.image.colorspace)
    np.testing.assert_array_equal(pixels[10, [5, 25]], [[1, 0, 0, 1], [1, 1, 1, 1]])


def test_a_line_is_on_disk_when_write_returns(tmp_path: Path):
    with MetricsWriter(tmp_path) as writer:
        writer.write(1, {"frames": 64})
        assert read_metrics(tmp_path) == [{"iteration": 1, "frames": 64.0}]


def test_lines_survive_a_power_loss_after_sync(tmp_path: Path, monkeypatch):
    synced: list[int] = []
    with MetricsWriter(tmp_path) as writer:
        writer.write(1, {"frames": 64})
        monkeypatch.setattr(os, "fsync", lambda descriptor: synced.append(os.fstat(descriptor).st_ino))
        writer.sync()
        assert synced == [(tmp_path / METRICS_FILE).stat().st_ino]


def test_resume_drops_lines_after_the_checkpoint(tmp_path: Path):
    write(tmp_path, 1, 5)
    with (tmp_path / METRICS_FILE).open("a") as stream:
        stream.write('{"iteration": 6, "train/pol')  # the process was killed here
    write(tmp_path, 4, 6, restored_iteration=3)
    assert [line["iteration"] for line in read_metrics(tmp_path)] == [1, 2, 3, 4, 5, 6]
    assert all(json.loads(line) for line in (tmp_path / METRICS_FILE).read_text().splitlines())
    starts = [event.step for event in events(tmp_path) if event.session_log.status == SessionLog.START]
    assert starts == [1, 4]
    assert len(list((tmp_path / TENSORBOARD_FOLDER).iterdir())) == 2


def test_a_fresh_start_in_an_old_folder_drops_everything(tmp_path: Path):
    write(tmp_path, 1, 2)
    write(tmp_path, 1, 1)
    assert [line["iteration"] for line in read_metrics(tmp_path)] == [1]


DAMAGED = [
    b"\xff\xfe",
    b"[]",
    b'"iteration"',
    b'{"iteration": "2"}',
    b'{"iteration": 0}',
    b'{"iteration": 2, "hours": 1' + b"0" * 4000 + b"}",
    b'{"iteration": 2, "hours": [1]}',
    b'{"iteration": 2, "hours": "long"}',
    b'{"iteration": 2, "hours": null}',
    b'{"iteration": 2, "board": "hex:5", "frames": null}',
    b'{"iteration": 2, "board": null}',
    b'{"iteration": 2, "train/policy_loss": 1}',
    b'{"iteration": 2, "board": "\xed\xa0\x80"}',  # half of a surrogate pair
    b'{"iteration": 2, "results": []}',  # without the number of games
    b'{"iteration": 2, "num_games": 4, "results": 3}',
    b'{"iteration": 2, "num_games": 4, "results": [{"name": "elo"}]}',
    b'{"iteration": 2, "num_games": 4, "results": [{"name": 1, "board": "hex:5", "value": 1}]}',
    b'{"iteration": 2, "num_games": 4, "results": [{"name": "elo", "board": "hex:5", "value": "high"}]}',
    b'{"iteration": ' + b"[" * 100_000,
]


@pytest.mark.parametrize("damaged", DAMAGED, ids=range(len(DAMAGED)))
def test_a_damaged_line_is_dropped_with_a_note_and_kept_beside(tmp_path: Path, damaged: bytes):
    write(tmp_path, 1, 3)
    file = tmp_path / METRICS_FILE
    first, _, third = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(first + damaged + b"\n" + third)
    before = file.read_bytes()
    assert [line["iteration"] for line in read_metrics(tmp_path)] == [1, 3]
    with MetricsWriter(tmp_path, restored_iteration=3) as writer:
        (note,) = writer.notes
    what = "1 damaged line dropped; 1 of 3 iterations missing"
    assert note.endswith(f"metrics.jsonl: {what}; metrics.jsonl.damaged keeps the old file")
    assert file.read_bytes() == first + third
    assert (tmp_path / "metrics.jsonl.damaged").read_bytes() == before


def test_only_the_first_of_several_starts_keeps_a_copy(tmp_path: Path):
    write(tmp_path, 1, 5)
    file = tmp_path / METRICS_FILE
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join([lines[0], b"{}\n", *lines[2:]]))
    for _ in range(3):
        with MetricsWriter(tmp_path, restored_iteration=4) as writer:
            (note,) = writer.notes
            writer.write(5, {"frames": 64})
    assert note.endswith("0 damaged lines dropped; 1 of 4 iterations missing")
    assert [path.name for path in tmp_path.glob("*.damaged*")] == ["metrics.jsonl.damaged"]


def test_no_changed_bit_changes_a_figure(tmp_path: Path):
    write(tmp_path, 1, 1)
    file = tmp_path / METRICS_FILE
    before, (line,) = file.read_bytes(), read_metrics(tmp_path)
    num_dropped = 0
    for bit in range(8 * (len(before) - 1)):
        changed = bytearray(before)
        changed[bit // 8] ^= 1 << bit % 8
        file.write_bytes(changed)
        found = read_metrics(tmp_path)
        num_dropped += not found
        assert not found or line.items() <= found[0].items()
    assert num_dropped > 4 * len(before)


def test_lines_of_older_versions_have_no_checksum(tmp_path: Path):
    (tmp_path / METRICS_FILE).write_text('{"iteration": 1, "frames": 64}\n')
    assert read_metrics(tmp_path) == [{"iteration": 1, "frames": 64}]


def test_files_of_the_wrong_type_are_moved_away(tmp_path: Path):
    (tmp_path / METRICS_FILE).mkdir()
    (tmp_path / TENSORBOARD_FOLDER).write_text("words")
    with pytest.raises(UserError, match=r"metrics\.jsonl cannot be read: Is a directory"):
        read_metrics(tmp_path)
    with MetricsWriter(tmp_path) as writer:
        writer.write(1, {"frames": 64})
        assert [note.split("/")[-1] for note in writer.notes] == [
            "metrics.jsonl was of the wrong type, and was moved to metrics.jsonl.damaged",
            "tensorboard was of the wrong type, and was moved to tensorboard.damaged",
        ]
    assert read_metrics(tmp_path) == [{"iteration": 1, "frames": 64.0}]
    assert (tmp_path / "tensorboard.damaged").read_text() == "words"


def test_a_last_line_without_its_end_is_completed(tmp_path: Path):
    write(tmp_path, 1, 2)
    file = tmp_path / METRICS_FILE
    file.write_bytes(file.read_bytes().removesuffix(b"\n"))
    write(tmp_path, 3, 3, restored_iteration=2)
    assert [line["iteration"] for line in read_metrics(tmp_path)] == [1, 2, 3]


def test_truncation_is_atomic(tmp_path: Path, monkeypatch):
    """A crash during the write of the new file keeps the old one."""
    write(tmp_path, 1, 5)
    before = (tmp_path / METRICS_FILE).read_text()

    def crash(self: Path, target: Path) -> None:
        raise OSError

    monkeypatch.setattr(Path, "replace", crash)
    try:
        metrics.truncate_after(tmp_path / METRICS_FILE, 3)
    except OSError:
        assert (tmp_path / METRICS_FILE).read_text() == before
        assert [path.name for path in tmp_path.glob(".*")] == []
    else:
        raise AssertionError("the file was not replaced by a rename")


def test_nonfinite_values_become_null(tmp_path: Path):
    with MetricsWriter(tmp_path) as writer:
        writer.write(1, {"a": float("nan"), "b": float("inf"), "c": 1})
    assert read_metrics(tmp_path) == [{"iteration": 1, "a": None, "b": None, "c": 1.0}]
    assert scalars(tmp_path) == [(1, "run/c", 1.0)]


def test_reading_a_folder_without_metrics(tmp_path: Path):
    assert read_metrics(tmp_path) == []


def test_results_round_trip(tmp_path: Path):
    with MetricsWriter(tmp_path) as writer:
        writer.write(4, {"board": "hex:5", "num_games": 64, "results": RESULTS})
    assert read_metrics(tmp_path) == [{"iteration": 4, "board": "hex:5", "num_games": 64, "results": RESULTS}]
    (line,) = (tmp_path / METRICS_FILE).read_text().splitlines()
    assert json.loads(line)["results"][2]["value"] is None


def test_an_evaluation_is_added_to_its_line(tmp_path: Path):
    write(tmp_path, 1, 2)
    with MetricsWriter(tmp_path, restored_iteration=2) as writer:
        writer.amend(2, {"num_games": 64, "results": RESULTS[:1]})
    lines = read_metrics(tmp_path)
    assert [line["iteration"] for line in lines] == [1, 2]
    assert lines[1] == {
        "iteration": 2,
        "board": "hex:5",
        "train/policy_loss": 0.5,
        "num_games": 64,
        "results": RESULTS[:1],
    }
    assert last_evaluation(lines) == lines[1]
    assert last_evaluation(lines, 1) is None


def test_tags_name_the_board_with_several_boards():
    line = {"iteration": 4, "board": "hex:7", "hours": 1.0, "train/policy_loss": 2.0, "num_games": 64}
    line["results"] = [*RESULTS[:1], Result("holdout/policy_loss", "hex:5", 0.5)]
    assert list(tagged(line, several_boards=False)) == [
        "run/hours",
        "train/policy_loss",
        "eval/num_games",
        "eval/vs_random/win_rate",
        "eval/vs_random/win_rate_low",
        "eval/vs_random/win_rate_high",
        "holdout/policy_loss",
    ]
    tags = tagged(line, several_boards=True)
    assert tags["train/hex:7/policy_loss"] == 2.0
    assert tags["eval/hex:5/vs_random/win_rate"] == RESULTS[0].value
    assert tags["holdout/hex:5/policy_loss"] == 0.5
    tags = tagged(line | {"trained_board": "hex:6", "selfplay/draws": 0.5}, several_boards=True)
    assert tags["train/hex:6/policy_loss"] == 2.0
    assert tags["selfplay/hex:7/draws"] == 0.5


def test_a_new_run_describes_itself_for_tensorboard(tmp_path: Path):
    settings = {"boards": ("hex:5",), "mesh.fsdp": True, "learner.learning_rate": 0.02, "seed": 3}
    for restored in (0, 1):
        (tmp_path / str(restored)).mkdir()
        with MetricsWriter(tmp_path / str(restored), restored_iteration=restored, settings=settings) as writer:
            writer.write(restored + 1, {"train/policy_loss": 1.0})
    tags = [[tag for _, tag, _ in scalars(tmp_path / str(restored))] for restored in (0, 1)]
    assert tags == [["config/text_summary", *EXPERIMENT, "train/policy_loss"], ["train/policy_loss"]]
    described = [value for event in events(tmp_path / "0") for value in event.summary.value][:3]
    assert b"| learner.learning_rate | 0.02 |" in described[0].tensor.string_val[0]
    start = HParamsPluginData.FromString(described[2].metadata.plugin_data.content).session_start_info.hparams
    assert start["boards"].string_value == "('hex:5',)"
    assert (start["mesh.fsdp"].bool_value, start["seed"].number_value) == (True, 3.0)


@pytest.mark.parametrize("boards", [(), ("hex:5",), ("hex:5", "hex:7")])
def test_the_losses_beside_the_hyperparameters_are_written(tmp_path: Path, boards: tuple[str, ...]):
    with MetricsWriter(tmp_path, boards=boards, settings={"seed": 3}) as writer:
        for iteration, board in enumerate(boards or ("hex:5",), start=1):
            writer.write(iteration, {"board": board, "train/policy_loss": 1.0, "train/value_loss": 0.5})
    first, *_ = [
        value.metadata.plugin_data.content
        for event in events(tmp_path)
        for value in event.summary.value
        if value.tag == EXPERIMENT[0]
    ]
    announced = [each.name.tag for each in HParamsPluginData.FromString(first).experiment.metric_infos]
    written = [tag for _, tag, _ in scalars(tmp_path) if tag.startswith("train/")]
    assert sorted(announced) == sorted(written)


def test_damaged_bytes_are_dropped_or_read(tmp_path: Path, monkeypatch, rounds: int):
    """Whatever is read back can be written again, and resuming keeps the lines up to its iteration."""
    (tmp_path / "whole").mkdir()
    with MetricsWriter(tmp_path / "whole") as writer:
        for iteration in (1, 2, 3):
            names = {"board": "hex:5", "trained_board": "hex:7"}
            writer.write(iteration, {"hours": 0.5 * iteration, **names, "num_games": 4, "results": RESULTS})
    monkeypatch.setattr(metrics, "write_atomically", Path.write_text)  # which waits for no disk
    file = tmp_path / METRICS_FILE
    for data in mutants([(tmp_path / "whole" / METRICS_FILE).read_bytes()], 200 * rounds):
        file.write_bytes(data)
        lines = read_metrics(tmp_path)
        for line in lines:
            metrics._json(line["iteration"], line)
            tagged(line, True)
        metrics.truncate_after(file, 2)
        assert str(read_metrics(tmp_path)) == str([line for line in lines if line["iteration"] <= 2])
        for copy in tmp_path.glob("*.damaged*"):
            copy.unlink()
