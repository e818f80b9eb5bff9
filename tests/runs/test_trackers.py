"""Tests the trackers offline: what MLflow has stored, what Weights & Biases has written, and failures."""

import json
import math
import time
from types import SimpleNamespace

import pytest

from alphagat.errors import UserError
from alphagat.runs import trackers
from alphagat.runs.trackers import FILE, Tracker, Trackers, check_installed

RUN = "0123456789abcdef"
SETTINGS = {"seed": 3, "boards": ("hex:2",), **{f"field_{number}": number for number in range(150)}}


@pytest.fixture
def mlflow(tmp_path, monkeypatch):
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", (tmp_path / "mlruns").as_uri())
    return pytest.importorskip("mlflow", reason="pip install 'alphagat[mlflow]'")


def test_mlflow_stores_settings_and_metrics_and_a_resumed_run_continues(mlflow, tmp_path):
    folder = tmp_path / "hex"
    folder.mkdir()
    with Trackers(["mlflow"], folder, SETTINGS, RUN) as opened:
        assert opened.add({"train/policy_loss": 2.5, "eval/vs_mcts:100/elo": math.nan}, 1) == []
    with Trackers(["mlflow"], folder, SETTINGS, RUN) as opened:
        assert opened.add({"train/policy_loss": 1.5, "eval/vs_mcts:100/elo": 20.0}, 2) == []
    client = mlflow.MlflowClient()
    (run,) = client.search_runs([client.get_experiment_by_name("alphagat").experiment_id])
    assert run.info.run_name == "hex"
    assert run.info.status == "FINISHED"
    assert run.data.params == {name: str(value) for name, value in SETTINGS.items()}
    losses = client.get_metric_history(run.info.run_id, "train/policy_loss")
    assert [(each.step, each.value) for each in losses] == [(1, 2.5), (2, 1.5)]
    assert run.data.metrics["eval/vs_mcts_100/elo"] == 20.0
    assert json.loads((folder / FILE).read_text()) == {"mlflow": run.info.run_id, "run": RUN}


def test_another_run_in_the_folder_is_a_new_tracked_run(mlflow, tmp_path):
    for seed in (0, 1, 1):
        with Trackers(["mlflow"], tmp_path, {"seed": seed}, f"run {seed}") as opened:
            assert opened.add({"loss": 1.0}, 1) == []
    client = mlflow.MlflowClient()
    runs = client.search_runs([client.get_experiment_by_name("alphagat").experiment_id])
    assert sorted(run.data.params["seed"] for run in runs) == ["0", "1"]


def test_wandb_writes_offline(tmp_path, monkeypatch):
    pytest.importorskip("wandb", reason="pip install 'alphagat[wandb]'")
    monkeypatch.setenv("WANDB_MODE", "offline")
    identifiers = []
    for _ in range(2):
        with Trackers(["wandb"], tmp_path, SETTINGS, RUN) as opened:
            assert opened.add({"train/policy_loss": 2.5}, 3) == []
            assert opened.add({"train/value_loss": 0.5}, 2) == []  # as after a return to a checkpoint
        identifiers.append(json.loads((tmp_path / FILE).read_text())["wandb"])
    assert identifiers[0] == identifiers[1]
    files = list(tmp_path.glob(f"wandb/offline-run-*/run-{identifiers[0]}.wandb"))
    assert files
    for _ in range(600):  # a process of wandb's writes them, in its own time
        texts = [file.read_bytes() for file in files]
        if written := all(name in text for text in texts for name in (b"train/policy_loss", b"train/value_loss")):
            break
        time.sleep(0.1)
    assert written


def test_wandb_gets_the_settings_and_the_iteration_with_each_value(tmp_path, monkeypatch):
    logged, started, axes = [], {}, []
    run = SimpleNamespace(
        id="1", log=logged.append, finish=lambda: None, define_metric=lambda *names, **axis: axes.append((names, axis))
    )
    wandb = SimpleNamespace(init=lambda **given: started.update(given) or run, Settings=lambda **_: None)
    tracker = trackers._open_wandb(wandb, tmp_path / "hex", "7", SETTINGS)
    tracker.log({"train/policy_loss": 0.5}, 3)
    assert logged == [{"train/policy_loss": 0.5, "iteration": 3}]
    assert axes == [(("*",), {"step_metric": "iteration"})]
    expected = {"project": "alphagat", "name": "hex", "id": "7", "resume": "allow", "config": SETTINGS}
    assert expected.items() <= started.items()


def test_a_resumed_run_is_running_at_mlflow(mlflow, tmp_path):
    statuses = []
    for _ in range(2):
        with Trackers(["mlflow"], tmp_path, SETTINGS, RUN):
            identifier = json.loads((tmp_path / FILE).read_text())["mlflow"]
            statuses.append(mlflow.MlflowClient().get_run(identifier).info.status)
        statuses.append(mlflow.MlflowClient().get_run(identifier).info.status)
    assert statuses == ["RUNNING", "FINISHED"] * 2


def test_without_trackers_nothing_is_written(tmp_path):
    with Trackers([], tmp_path, SETTINGS, RUN) as opened:
        assert opened.add({"loss": 1.0}, 1) == []
    assert not list(tmp_path.iterdir())


def test_a_tracker_that_fails_is_left_out_and_the_others_go_on(tmp_path, monkeypatch):
    logged: list = []

    def fail(values, iteration):
        raise OSError("no\nroute")

    def open_first(package, folder, identifier, settings):
        return Tracker("one", fail, lambda: logged.append("closed one"))

    def open_second(package, folder, identifier, settings):
        return Tracker(
            "two", lambda values, iteration: logged.append((values, iteration)), lambda: logged.append("end")
        )

    monkeypatch.setattr(trackers, "OPENERS", {"json": open_first, "math": open_second})  # importable names
    with Trackers(["json", "math"], tmp_path, SETTINGS, RUN) as opened:
        assert opened.add({"loss": 1.0, "bad": math.inf}, 4) == [
            "json gets no more metrics of this run: OSError: no route"
        ]
        assert opened.add({"loss": 2.0}, 5) == []
    assert logged == [({"loss": 1.0}, 4), ({"loss": 2.0}, 5), "end"]


def test_a_tracker_that_cannot_start_gives_one_line(tmp_path, monkeypatch):
    def refuse(package, folder, identifier, settings):
        raise RuntimeError("no key\nis set")

    monkeypatch.setattr(trackers, "OPENERS", {"json": refuse})
    with pytest.raises(UserError, match="trackers=json: RuntimeError: no key is set; leave it out, or set it up"):
        Trackers(["json"], tmp_path, SETTINGS, RUN)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("closes", [True, False])
def test_a_tracker_is_closed_and_continued_if_the_next_one_cannot_start(tmp_path, monkeypatch, closes: bool):
    found: list[str | None] = []

    def close():
        found.append("closed")
        if not closes:
            raise OSError("no route")

    def open_first(package, folder, identifier, settings):
        found.append(identifier)
        return Tracker("one", lambda *_: None, close)

    def refuse(package, folder, identifier, settings):
        raise RuntimeError("no key is set")

    monkeypatch.setattr(trackers, "OPENERS", {"json": open_first, "math": refuse})
    for _ in range(2):
        with pytest.raises(UserError, match="trackers=math: RuntimeError: no key is set; leave it out, or set it up"):
            Trackers(["json", "math"], tmp_path, SETTINGS, RUN)
    assert found == [None, "closed", "one", "closed"]


def test_a_missing_package_is_named_before_anything_is_written():
    check_installed(["json"])
    with pytest.raises(UserError, match=r"trackers=no_such: install it by pip install 'alphagat\[no_such\]'"):
        check_installed(["json", "no_such"])


@pytest.mark.parametrize("text", ["", "[]", "{"])
def test_damaged_identifiers_start_a_new_tracked_run(mlflow, tmp_path, text):
    (tmp_path / FILE).write_text(text)
    with Trackers(["mlflow"], tmp_path, {}, RUN) as opened:
        assert opened.add({"loss": 1.0}, 1) == []
    assert json.loads((tmp_path / FILE).read_text()).keys() == {"mlflow", "run"}
