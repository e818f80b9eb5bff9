"""The training command: each mistake gives one line and exit status 2."""

import contextlib
import subprocess
import sys
from pathlib import Path

import pytest

import alphagat
from alphagat import config_fields, config_files
from alphagat.cli import commands, pretrain, train
from alphagat.config import Config
from alphagat.errors import UserError
from alphagat.runs.folder import open_run_folder
from alphagat.runtime import distributed, xla
from tests.fuzz import mutants, text_mutants

GOOD = (
    "from alphagat.config import Config\n\ndef get_config():\n    return Config(boards=('hex:3',), num_iterations=7)\n"
)
FILES = {
    "good.py": GOOD,
    "raises.py": "x = 1\nraise RuntimeError('no\\nway')\n",
    "raises_late.py": "def get_config():\n    return 1 / 0\n",
    "raises_inside.py": "def fail():\n    return 1 / 0\n\ndef get_config():\n    return fail()\n",
    "quits.py": "raise SystemExit(0)\n",
    "quits_late.py": "import sys\n\ndef get_config():\n    sys.exit()\n",
    "recurses.py": "def get_config():\n    return get_config()\n",
    "nested.py": (
        "from alphagat.config import Config\n\ndef get_config():\n    x = ()\n    for _ in range(10**5):\n"
        "        x = (x,)\n    return Config(boards=x)\n"
    ),
    "large.py": "from alphagat.config import *\n\ndef get_config():\n    return Config(seed=10**5000)\n",
    "syntax.py": "def get_config(:\n",
    "empty.py": "",
    "wrong_type.py": "def get_config():\n    return {}\n",
    "run.json": "{}",
    "invalid.py": "from alphagat.config import *\n\ndef get_config():\n    return Config(seed=-1)\n",
}


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[tuple[Config, Path]]:
    """Changes to a folder with config files, and records the calls of `alphagat.train`."""
    folder = tmp_path / "configs"
    folder.mkdir()
    for name, text in FILES.items():
        (folder / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    recorded: list[tuple[Config, Path]] = []
    monkeypatch.setattr(
        alphagat, "train", lambda config, workdir, **_: recorded.append((config, workdir)), raising=False
    )
    return recorded


@pytest.fixture
def run_folder(calls) -> Path:
    """Returns the folder of a run of `good.py` with another seed."""
    config = config_files.load_config("configs/good.py", ["--config.seed=5"])
    return open_run_folder(Path("runs/mine"), config) or Path("runs/mine")


def test_the_folder_of_a_run_resumes_it_with_its_own_config(calls, run_folder):
    assert train.run([f"{run_folder}/", "--config.num_iterations=9"]) == 0
    ((config, folder),) = calls
    assert folder == run_folder
    assert (config.boards, config.seed, config.num_iterations) == (("hex:3",), 5, 9)


def test_the_config_of_a_run_may_start_another_run(calls, run_folder):
    assert train.run([str(run_folder), "--workdir", "runs/other", "--config.seed=6"]) == 0
    ((config, folder),) = calls
    assert (folder, config.boards, config.seed) == (Path("runs/other"), ("hex:3",), 6)


def test_a_run_named_like_a_config_does_not_hide_it(calls, run_folder):
    run_folder.rename("quickstart")
    assert train.run(["quickstart"]) == 0
    ((config, folder),) = calls
    assert (folder, config.boards) == (Path("runs/quickstart"), ("hex:5",))


BASE = ["--config", "configs/good.py", "--workdir", "w"]
MISTAKES = {
    "no flags": ([], "CONFIG is missing; name one, such as quickstart"),
    "no config": (["--workdir", "w"], "CONFIG is missing"),
    "no such name": (["quickstrat"], "config quickstrat: there is no such file or config; the nearest is quickstart"),
    "a folder": (
        ["configs"],
        "--config configs: it is neither a run nor a Python file; configs/ has empty.py, good.py",
    ),
    "JSON": (
        ["configs/run.json"],
        "--config configs/run.json: it is no Python file; for the config of a run, name the",
    ),
    "initials": ([*BASE, "--config.learner.lr=1"], "the nearest is --config.learner.learning_rate"),
    "two configs": ([*BASE, "quickstart"], "--config configs/good.py: quickstart already names a config; give only"),
    "config without a path": (["--workdir", "w", "--config"], "--config: expected one argument"),
    "init_from twice": (
        [*BASE, "--init_from", "hex", "--config.init_from=runs/a"],
        "--init_from and --config.init_from set the same field; remove one of them",
    ),
    "missing file": (["--config", "configs/god", "--workdir", "w"], "configs/ has empty.py, good.py"),
    "missing folder": (["--config", "nowhere/x.py", "--workdir", "w"], "nowhere/ has no Python file"),
    "raises": (["--config", "configs/raises", "--workdir", "w"], "configs/raises.py, line 2: RuntimeError: no way"),
    "raises late": (["--config", "configs/raises_late", "--workdir", "w"], "line 2: ZeroDivisionError"),
    "raises inside": (
        ["--config", "configs/raises_inside", "--workdir", "w"],
        "configs/raises_inside.py, line 2: Zero",
    ),
    "quits": (["--config", "configs/quits", "--workdir", "w"], "configs/quits.py, line 1: SystemExit: 0"),
    "quits late": (["--config", "configs/quits_late", "--workdir", "w"], "configs/quits_late.py, line 4: SystemExit"),
    "recurses": (["--config", "configs/recurses", "--workdir", "w"], "RecursionError"),
    "nested": (["--config", "configs/nested", "--workdir", "w"], "configs/nested.py: config.boards contains a tuple"),
    "large": (["--config", "configs/large", "--workdir", "w"], "configs/large: a number is too long"),
    "long opponent": (
        [*BASE, "--config.evaluation.opponents=mcts:" + "9" * 5000],
        "each number of mcts:SIMULATIONS must",
    ),
    "long name": (["--config", "x" * 300, "--workdir", "w"], "xxx…: File name too long; use another path"),
    "NUL": ([*BASE, "--config.init_from=a\0b"], "config.init_from='a\\x00b': it must not contain a NUL character"),
    "syntax error": (["--config", "configs/syntax", "--workdir", "w"], "SyntaxError"),
    "no get_config": (["--config", "configs/empty", "--workdir", "w"], "no function get_config()"),
    "another type": (["--config", "configs/wrong_type", "--workdir", "w"], "returned dict"),
    "invalid config": (["--config", "configs/invalid", "--workdir", "w"], "config.seed=-1"),
    "unknown field": ([*BASE, "--config.search.num_simulation=3"], "nearest is --config.search.num_simulations"),
    "another section": ([*BASE, "--config.selfplay.learning_rate=3"], "nearest is --config.learner.learning_rate"),
    "a section": ([*BASE, "--config.search=3"], "config.search is a section"),
    "unknown flag": ([*BASE, "--wrkdir=w"], "--wrkdir is not a flag of this command; the nearest is --workdir"),
    "unknown flag before a name": (["--wrkdir", "w", "smoke"], "--wrkdir is not a flag"),
    "name of a field": (
        ["--seed", "3", "smoke"],
        "--seed is not a flag of this command; set the field by --config.seed=VALUE",
    ),
    "name of two fields": (
        ["quickstart", "--every=5"],
        "set the field by --config.evaluation.every=VALUE or --config.checkpoint.every=VALUE",
    ),
    "word like a field": ([*BASE[:2], "--config.seed=1", "--workdir", "w", "seed"], "seed already names a config"),
    "name of an inner field": ([*BASE, "--learning_rate=3"], "set the field by --config.learner.learning_rate=VALUE"),
    "path of a field": (
        [*BASE, "--learner.learning_rate=3"],
        "set the field by --config.learner.learning_rate=VALUE",
    ),
    "unknown compiler flags": ([*BASE, "--xla", "fast"], "--xla fast: choose one of default, "),
    "abbreviated flag": (
        ["--conf=configs/good.py", "--workdir", "w"],
        "--conf is not a flag of this command; the nearest is --config",
    ),
    "stray word": ([*BASE, "now"], "now already names a config"),
    "float for int": ([*BASE, "--config.search.num_simulations=3.5"], "num_simulations=3.5: it must be an integer"),
    "word for float": ([*BASE, "--config.learner.learning_rate=fast"], "learning_rate=fast: it must be a number"),
    "word for bool": ([*BASE, "--config.mesh.fsdp=perhaps"], "fsdp=perhaps: it must be true or false"),
    "empty number": ([*BASE, "--config.seed="], "--config.seed=: it must be an integer"),
    "word in a list": ([*BASE, "--config.board_weights=1,a"], "--config.board_weights=a: it must be a number"),
    "number for tuple": ([*BASE, "--config.evaluation.opponents=3"], "there is no opponent '3'"),
    "no value": ([*BASE, "--config.seed"], "--config.seed has no value"),
    "refused value": ([*BASE, "--config.search.num_simulations=0"], "config.search.num_simulations=0: it must be at"),
}


@pytest.mark.parametrize(("argv", "expected"), MISTAKES.values(), ids=MISTAKES.keys())
def test_errors_give_one_line_and_exit_2(argv, expected: str, calls, capsys: pytest.CaptureFixture):
    assert train.run(argv) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count("\n") == 1
    assert printed.err.startswith("error: ")
    assert expected in printed.err
    assert calls == []


@pytest.mark.parametrize("path", ["configs/good.py", "configs/good"])
@pytest.mark.parametrize("flag", [["--config"], []])
def test_config_reaches_train(path: str, flag: list[str], calls):
    assert train.run(["--workdir", "runs/w", *flag, path]) == 0
    assert calls == [(Config(boards=("hex:3",), num_iterations=7), Path("runs/w"))]


def test_names_of_the_package_and_the_default_folder(calls):
    """In an empty folder; a file of the folder comes first."""
    assert train.run(["quickstart", "--config.seed", "3"]) == 0
    config, folder = calls.pop()
    assert (config.boards, config.num_iterations, config.seed) == (("hex:5",), 120, 3)
    assert folder == Path("runs/quickstart")
    Path("quickstart.py").write_text(GOOD)
    assert train.run(["quickstart"]) == 0
    assert calls == [(Config(boards=("hex:3",), num_iterations=7), Path("runs/quickstart"))]


@pytest.mark.parametrize("path", ["wide.v2.py", "wide.v2"])
def test_the_default_folder_keeps_dots_of_the_name(calls, path):
    Path("wide.v2.py").write_text(GOOD)
    assert train.run([path]) == 0
    assert [folder for _, folder in calls] == [Path("runs/wide.v2")]


@pytest.mark.parametrize(
    ("flags", "path", "value"),
    [
        (["--config.search.num_simulations=5"], "search.num_simulations", 5),
        (["--config.search.num_simulations", "5"], "search.num_simulations", 5),
        (["--config.learner.learning_rate=1"], "learner.learning_rate", 1.0),
        (["--config.mesh.fsdp"], "mesh.fsdp", True),
        (["--config.mesh.fsdp=false"], "mesh.fsdp", False),
        (["--config.mesh.fsdp=True"], "mesh.fsdp", True),
        (["--config.boards=hex:4"], "boards", ("hex:4",)),
        (["--config.boards=2048"], "boards", ("2048",)),
        (["--config.boards=2048:3,2048"], "boards", ("2048:3", "2048")),
        (["--config.boards=('2048',)"], "boards", ("2048",)),
        (["--config.boards=hex:4,hex:5"], "boards", ("hex:4", "hex:5")),
        (["--config.board_weights=0.5"], "board_weights", (0.5,)),
        (["--config.seed=4", "--config.seed=5"], "seed", 5),
        (["--init_from", "runs/a"], "init_from", "runs/a"),
        (["--config.evaluation.opponents=random"], "evaluation.opponents", ("random",)),
        (["--config.evaluation.opponents=random,mcts:5"], "evaluation.opponents", ("random", "mcts:5")),
        (["--config.evaluation.opponents=('random','mcts:5')"], "evaluation.opponents", ("random", "mcts:5")),
        (["--config.evaluation.opponents=()"], "evaluation.opponents", ()),
        (["--config.evaluation.opponents="], "evaluation.opponents", ()),
        (["--config.board_weights="], "board_weights", ()),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_overrides(flags: list[str], path: str, value: object, calls):
    for argv in ([*BASE, *flags], [*flags, *BASE]):
        assert train.run(argv) == 0
        config, _ = calls.pop()
        assert {field.path: field.value for field in config_fields.fields(config)}[path] == value


def test_the_last_of_several_flags_for_a_field_counts(calls):
    flags = ("--config.boards=hex:3,hex:4", "--config.seed=1", "--config.boards=hex:5,hex:6", "--config.seed=2")
    assert train.run([*BASE, *flags]) == 0
    config, _ = calls.pop()
    assert (config.boards, config.seed) == (("hex:5", "hex:6"), 2)


def test_damaged_config_files_and_flags_raise_only_user_errors(tmp_path: Path, rounds: int):
    loaded, file, good = 0, tmp_path / "x.py", tmp_path / "good.py"
    good.write_text(GOOD)
    flags = (
        *("--config.search.num_simulations=5", "--config.boards=hex:4,hex:5", "--config.learner.learning_rate=1e-3"),
        *("--config.evaluation.opponents=('random','mcts:5')", "--config.mesh.fsdp"),
    )
    text = GOOD + "\n\nVALUE = [(1, 2.5), {'a': None}]\n"
    for code, flag in zip(mutants([text.encode()], 300 * rounds), text_mutants(flags, 300 * rounds)):
        file.write_bytes(code)
        for read in (
            lambda: config_files.load_config(str(file)),
            lambda flag=flag: config_files.load_config(str(good), [flag]),
        ):
            with contextlib.suppress(UserError):
                assert isinstance(read(), Config)
                loaded += 1
    assert 0 < loaded < 600 * rounds


def test_user_error_in_train_gives_one_line(calls, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture):
    def refuse(config: Config, workdir: Path, profile: str | None) -> None:
        raise UserError("the board\n is unknown")

    monkeypatch.setattr(alphagat, "train", refuse, raising=False)
    assert train.run(BASE) == 2
    assert capsys.readouterr().err == "error: the board is unknown\n"


def test_interrupt_says_how_to_resume(calls, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture):
    def interrupt(config: Config, workdir: Path, profile: str | None) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(alphagat, "train", interrupt, raising=False)
    assert train.run(BASE) == 130
    assert "run the same command to continue" in capsys.readouterr().err


def test_an_interrupt_in_a_garbage_collector_callback_is_repeated():
    """Python only prints an exception raised there, and JAX installs such a callback."""
    program = """
import gc, os, signal, sys, time
from alphagat.cli import commands

def command(argv):
    def interrupt(phase, info):
        gc.callbacks.remove(interrupt)
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.1)
    gc.callbacks.append(interrupt)
    gc.collect()
    time.sleep(0.5)
    print("went on")

commands.end(commands.run(command, [], interrupted="interrupted here"))
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "interrupted here\n")


def test_help_lists_every_field(capsys: pytest.CaptureFixture):
    assert train.run(["--help"]) == 0
    text = capsys.readouterr().out
    for field in config_fields.fields(Config()):
        assert f"  {field.path}=" in text
    assert max(len(line) for line in text.splitlines()) <= 120


def test_errors_are_reported_before_jax_is_imported():
    """Flags are checked before the slow import."""
    program = (
        "import sys; from alphagat.cli import train; status = train.run(['--config', 'nowhere.py', '--workdir', 'w']);"
        "print(status, [name for name in ('jax', 'flax', 'orbax', 'tensorboardX') if name in sys.modules])"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ended.stdout == "2 []\n"


def test_a_failure_of_one_of_several_processes_exits_at_once(calls, monkeypatch, capsys):
    """Python's shutdown would wait for the other processes, which wait for this one."""

    def fail(config: Config, workdir: Path, profile: str | None) -> None:
        raise RuntimeError("broken")

    monkeypatch.setattr(alphagat, "train", fail, raising=False)
    with pytest.raises(RuntimeError, match="broken"):
        train.run(BASE)
    monkeypatch.setattr(commands.distributed, "num_processes", lambda: 2)
    assert train.run(BASE) == 1
    assert "RuntimeError: broken" in capsys.readouterr().err
    ended: list[int] = []
    monkeypatch.setattr(commands.os, "_exit", lambda status: ended.append(status))
    with pytest.raises(SystemExit):
        commands.end(1)
    assert ended == [1]


def test_a_closed_output_ends_a_command_quietly():
    code = """if True:
        import sys
        from alphagat.cli import commands

        def say(argv):
            for _ in range(100_000):
                print("a line", flush=True)

        commands.end(commands.run(say, []))
    """
    with subprocess.Popen(
        [sys.executable, "-c", code], cwd=Path(__file__).parents[2], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as run:
        assert run.stdout is not None
        assert run.stdout.readline() == b"a line\n"
        run.stdout.close()
        _, said = run.communicate(timeout=60)
    assert (run.returncode, said) == (1, b"")


@pytest.mark.usefixtures("calls")
@pytest.mark.parametrize(
    ("command", "more"), [(train, []), (pretrain, ["--games", "games.sgf"])], ids=["train", "pretrain"]
)
def test_the_flags_beside_the_config_take_effect(command, more, monkeypatch):
    done = []
    monkeypatch.setattr(xla, "use_flags", done.append)
    monkeypatch.setattr(distributed, "connect", lambda *cluster: done.append(cluster))
    monkeypatch.setattr(alphagat, "train", lambda config, workdir, *, profile: done.append(profile))
    flags = ["--xla", "debug", "--profile", "2:3", "--nodes", "4", "--node_rank", "1", "--coordinator", "a:5"]
    assert command.run([*BASE, *more, *flags]) == 0
    assert done == ["debug", (4, 1, "a:5"), "2:3"]
