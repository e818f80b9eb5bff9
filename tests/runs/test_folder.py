"""A folder holds one run: the same config resumes it, another raises and names the differing field."""

import contextlib
import errno
import json
import os
from pathlib import Path

import pytest

from alphagat.config import Config, EvaluationConfig, NetworkConfig
from alphagat.errors import UserError
from alphagat.runs.folder import check_run_folder, open_run_folder, read_config, read_starts
from alphagat.runs.lock import FolderLock
from tests.fuzz import mutants


@pytest.fixture
def config() -> Config:
    return Config(boards=("hex:3",), network=NetworkConfig(width=16))


def test_new_folder_gets_both_files(tmp_path: Path, config: Config):
    folder = open_run_folder(tmp_path / "runs" / "a", config)
    assert read_config(folder) == config
    (start,) = json.loads((folder / "env.json").read_text())
    assert start["devices"] == ["cpu"] * 8
    assert {"jax", "jaxlib", "flax", "optax", "mctx", "numpy"} <= start["packages"].keys()
    assert sorted(path.name for path in folder.iterdir()) == ["config.json", "env.json"]


def test_only_variables_of_jax_and_xla_are_recorded(tmp_path: Path, config: Config, monkeypatch):
    """Others may hold passwords."""
    monkeypatch.setenv("WANDB_API_KEY", "secret")
    monkeypatch.setenv("XLA_PYTHON_CLIENT_MEM_FRACTION", "0.5")
    (start,) = read_starts(open_run_folder(tmp_path, config))
    assert start["environment"]["XLA_PYTHON_CLIENT_MEM_FRACTION"] == "0.5"
    assert "secret" not in (tmp_path / "env.json").read_text()


def test_resume_keeps_earlier_starts_and_updates_changeable_fields(tmp_path: Path, config: Config):
    open_run_folder(tmp_path, config)
    config.num_iterations = 500
    config.mesh.data = 4
    config.evaluation = EvaluationConfig(every=5, opponents=("random",))
    config.checkpoint.keep = 9
    config.learner.num_micro_batches, config.network.remat, config.network.backend = 2, True, "dense"
    open_run_folder(tmp_path, config)
    assert read_config(tmp_path) == config
    assert len(json.loads((tmp_path / "env.json").read_text())) == 2


@pytest.mark.parametrize(
    ("section", "name", "value", "message"),
    [
        (None, "boards", ("hex:4",), "config.boards=hex:4, but the run in {} has hex:3: set --config.boards=hex:3"),
        (None, "seed", 1, "config.seed=1, but the run in {} has 0"),
        ("network", "width", 32, "config.network.width=32, but the run in {} has 16"),
        ("search", "num_simulations", 64, "config.search.num_simulations=64, but the run in {} has 32"),
        ("selfplay", "num_groups", 16, "config.selfplay.num_groups=16, but the run in {} has 8"),
        ("replay", "capacity", 512, "config.replay.capacity=512, but the run in {} has 65536"),
        ("replay", "min_size", 32, "config.replay.min_size=32, but the run in {} has 4096"),
        ("learner", "learning_rate", 0.1, "config.learner.learning_rate=0.1, but the run in {} has 0.02"),
    ],
)
def test_another_run_is_refused_and_unchanged(tmp_path: Path, config: Config, section, name, value, message):
    open_run_folder(tmp_path, config)
    (tmp_path / "metrics.jsonl").write_text('{"iteration": 1}\n')
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    setattr(getattr(config, section) if section else config, name, value)
    with pytest.raises(UserError) as refusal:
        open_run_folder(tmp_path, config)
    assert message.format(tmp_path) in str(refusal.value)
    assert "another --workdir" in str(refusal.value)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_the_scale_of_fast_searches_does_not_change(tmp_path: Path, config: Config):
    for fraction in (1.0, 0.5):
        folder = tmp_path / str(fraction)
        config.selfplay.full_search_fraction, config.evaluation.value_scale = fraction, 1.0
        open_run_folder(folder, config)
        (folder / "metrics.jsonl").write_text('{"iteration": 1}\n')
        config.evaluation.value_scale = 0.5
        if fraction == 1:
            open_run_folder(folder, config)
    with pytest.raises(UserError, match=r"config\.evaluation\.value_scale=0\.5, but .* has 1\.0"):
        open_run_folder(folder, config)


@pytest.mark.parametrize("name", ["c4[lr=0.01]", "[old]/run", "a[b-c]d/e", "a\\b"])
def test_a_path_that_orbax_takes_for_a_pattern_is_refused(tmp_path: Path, config: Config, name: str):
    """It would write checkpoints there that nobody can read."""
    with pytest.raises(UserError, match="brackets and backslashes in its path"):
        open_run_folder(tmp_path / name, config)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["a b", "a*b", "a?b", "a{b}", "a#b", "a[b", "a]b", "%41", "é"])
def test_a_path_with_other_characters_is_accepted(tmp_path: Path, config: Config, name: str):
    assert read_config(open_run_folder(tmp_path / name, config)) == config


@pytest.mark.parametrize("by_actors", [True, False])
def test_actors_and_recorded_games_need_the_same_order_of_boards(tmp_path: Path, config: Config, by_actors: bool):
    """The length of a run changes the order of the boards."""
    config.boards, config.board_weights = ("hex:3", "hex:2"), (2.0, 1.0)
    config.mesh.actors, config.pretrain.games = (1, ()) if by_actors else (0, ("games.sgf",))
    open_run_folder(tmp_path, config)
    (tmp_path / "metrics.jsonl").write_text('{"iteration": 1}\n')
    config.num_iterations += 1
    open_run_folder(tmp_path, config)  # constant weights give a constant order
    changes = tmp_path / "changes"
    config.final_board_weights = (0.0, 1.0)
    open_run_folder(changes, config)
    (changes / "metrics.jsonl").write_text('{"iteration": 1}\n')
    config.num_iterations += 1
    with pytest.raises(UserError, match=r"config\.num_iterations=.* it changes the order of the boards"):
        open_run_folder(changes, config)


@pytest.mark.parametrize("progress", [None, "metrics.jsonl", "checkpoints/1"])
def test_a_run_without_progress_may_start_again_with_another_config(tmp_path: Path, config: Config, progress):
    open_run_folder(tmp_path, config)
    (tmp_path / "checkpoints").mkdir()
    if progress:
        (tmp_path / progress).write_text("{}")
    config.seed = 1
    if progress:
        with pytest.raises(UserError, match=r"config\.seed=1, but the run in"):
            open_run_folder(tmp_path, config)
    else:
        open_run_folder(tmp_path, config)
        assert read_config(tmp_path) == config


def test_a_folder_with_other_files_is_refused_and_unchanged(tmp_path: Path, config: Config):
    (tmp_path / "thesis.tex").write_text("words")
    with pytest.raises(UserError, match="name an empty or new folder"):
        open_run_folder(tmp_path, config)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_an_empty_folder_is_accepted(tmp_path: Path, config: Config):
    open_run_folder(tmp_path, config)
    assert read_config(tmp_path) == config


def test_an_unfinished_first_write_is_no_other_file(tmp_path: Path, config: Config):
    (tmp_path / ".config.json.4711.tmp").write_text("{")
    open_run_folder(tmp_path, config)
    assert read_config(tmp_path) == config


def test_a_file_is_refused(tmp_path: Path, config: Config):
    (tmp_path / "w").write_text("")
    with pytest.raises(UserError, match="is a file"):
        open_run_folder(tmp_path / "w", config)
    with pytest.raises(UserError, match="w is a file; name another folder"):
        open_run_folder(tmp_path / "w" / "below", config)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "cannot be read"),
        ('{"bord": "hex:5"}', "config.bord is not a field"),
        ('{"seed": -1}', "config.seed=-1"),
    ],
)
def test_a_broken_config_file_is_refused_and_kept(tmp_path: Path, config: Config, text: str, message: str):
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(UserError, match=message):
        open_run_folder(tmp_path, config)
    assert (tmp_path / "config.json").read_text() == text


def test_reading_a_folder_without_a_run_raises(tmp_path: Path):
    with pytest.raises(UserError, match="holds no run"):
        read_config(tmp_path)


def test_a_broken_environment_file_does_not_stop_a_run(tmp_path: Path, config: Config):
    open_run_folder(tmp_path, config)
    (tmp_path / "env.json").write_text("[{")
    open_run_folder(tmp_path, config)
    assert len(json.loads((tmp_path / "env.json").read_text())) == 1


def test_only_objects_are_starts(tmp_path: Path):
    (tmp_path / "env.json").write_text('[1, {"started": "today"}, null]')
    assert read_starts(tmp_path) == [{"started": "today"}]


def test_damaged_configs_raise_only_user_errors(tmp_path: Path, config: Config, rounds: int):
    (tmp_path / "whole").mkdir()
    valid, read = (open_run_folder(tmp_path / "whole", config) / "config.json").read_bytes(), 0
    for data in mutants([valid], 500 * rounds):
        (tmp_path / "config.json").write_bytes(data)
        with contextlib.suppress(UserError):
            assert isinstance(read_config(tmp_path), Config)
            read += 1
    assert 0 < read < 500 * rounds


def test_a_deep_config_is_refused_and_a_deep_environment_is_empty(tmp_path: Path):
    for name in ("config.json", "env.json"):
        (tmp_path / name).write_text("[" * 200_000)
    assert read_starts(tmp_path) == []
    with pytest.raises(UserError, match=r"config\.json cannot be read: it is nested deeper than 100 levels"):
        read_config(tmp_path)


def test_a_file_instead_of_a_run_is_named(tmp_path: Path):
    (tmp_path / "net.safetensors").write_text("")
    with pytest.raises(UserError, match=r"net\.safetensors is not a folder; name the folder of a run$"):
        read_config(tmp_path / "net.safetensors")


def test_a_long_or_invalid_value_is_shortened(tmp_path: Path):
    (tmp_path / "config.json").write_text(json.dumps({"boards": ["x" * 10**4] * 100, "seed": "9" * 10**4}))
    with pytest.raises(UserError) as refusal:
        read_config(tmp_path)
    assert len(str(refusal.value)) < 1000


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("a\0b", "(stat: )?embedded null (byte|character in path)"),
        ("x" * 300, "File name too long"),
        ("a/" * 3000, "File name too long"),
    ],
    ids=["NUL", "300 characters", "6,000 characters"],
)
def test_a_folder_with_an_impossible_name_is_refused(name: str, reason: str, tmp_path: Path, config: Config):
    with pytest.raises(UserError, match=f"--workdir '.*': {reason}; name another folder"):
        open_run_folder(tmp_path / name, config)


@pytest.mark.parametrize("use", [check_run_folder, lambda folder, _: read_config(folder)], ids=("train", "read"))
def test_a_name_that_is_not_utf8_is_refused(use, tmp_path: Path, config: Config):
    with pytest.raises(
        UserError, match=r"^--workdir '.*run\\udcff': the name is not UTF-8; rename it or name another$"
    ):
        use(tmp_path / os.fsdecode(b"run\xff"), config)


@pytest.mark.parametrize("use", [check_run_folder, lambda folder, _: read_config(folder)], ids=("train", "read"))
def test_a_deleted_current_folder_is_named(use, tmp_path: Path, config: Config, monkeypatch):
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    with pytest.raises(UserError, match=r"^--workdir run: the current folder was deleted; change to another one$"):
        use("run", config)


@pytest.mark.parametrize("name", ["file", "file/run"])
def test_a_folder_that_is_a_file_or_below_one_is_refused(name: str, tmp_path: Path, config: Config):
    (tmp_path / "file").write_text("words")
    with pytest.raises(UserError, match=r"is a file; name a(nother)? folder"):
        open_run_folder(tmp_path / name, config)
    assert (tmp_path / "file").read_text() == "words"


@pytest.mark.parametrize(
    ("number", "reason"),
    [(errno.EACCES, "Permission denied; name"), (errno.ENOSPC, "no space left on device; free some, or name")],
)
def test_a_folder_that_cannot_be_written_is_refused(tmp_path: Path, config: Config, monkeypatch, number, reason):
    def refuse(self: Path, *_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number), str(self))

    monkeypatch.setattr(Path, "mkdir", refuse)
    for write in (lambda: open_run_folder(tmp_path / "run", config), FolderLock(tmp_path / "run").take):
        with pytest.raises(UserError, match=f"cannot be written: {reason} another folder"):
            write()


def test_a_folder_that_cannot_be_created_is_refused(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != tmp_path)  # root may write everywhere
    with pytest.raises(UserError, match=rf"^--workdir {tmp_path}/a/b: {tmp_path} cannot be written; name another"):
        check_run_folder(tmp_path / "a" / "b", Config())
    (tmp_path / "a").mkdir()
    assert check_run_folder(tmp_path / "a" / "b", Config()) == tmp_path / "a" / "b"


def test_an_empty_name_is_refused(tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # empty, so that a run could begin there
    with pytest.raises(UserError, match=r"^--workdir '': it is empty; name a folder$"):
        check_run_folder("", Config())
    assert check_run_folder(".", Config()) == Path()


@pytest.mark.parametrize(("name", "reason"), [("file/run", "is a file"), ("x" * 300, "File name too long")])
def test_a_folder_that_cannot_exist_is_refused_early(name: str, reason: str, tmp_path: Path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match=reason):
        check_run_folder(tmp_path / name, Config())
