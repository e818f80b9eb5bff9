"""The command `alphagat`, its list of configs, and completion in a shell."""

import errno
import importlib
import os
import runpy
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import jax
import pytest

import alphagat
from alphagat import __main__
from alphagat.cli import COMMANDS, commands, completion
from alphagat.config import Config
from alphagat.errors import JointError
from alphagat.runtime import distributed, supervisor
from alphagat.runtime.preemption import Interrupted, Preempted

ROOT = Path(__file__).parents[2]


def test_every_module_of_the_package_is_a_command_or_shared():
    modules = {file.stem for file in (ROOT / "alphagat" / "cli").glob("*.py")}
    shared = {"__init__", "commands", "engine_options", "number_actions", "server_options", "training_arguments"}
    assert modules - set(COMMANDS) == shared
    assert set(COMMANDS) <= modules


def test_overview(capsys):
    for argv in ([], ["--help"], ["-h"]):
        assert __main__.run(argv) == 0
        text = capsys.readouterr().out
        assert [name for name, summary in COMMANDS.items() if f"  {name:12}{summary}\n" not in text] == []


def test_version(capsys):
    assert __main__.run(["--version"]) == 0
    assert capsys.readouterr().out == f"alphagat {alphagat.__version__}\n"


@pytest.mark.parametrize(
    ("word", "hint"), [("trian", "the nearest is train"), ("xyzzy", "alphagat --help lists them"), ("", "lists them")]
)
def test_an_unknown_command(word, hint, capsys):
    assert __main__.run([word]) == 2
    printed = capsys.readouterr()
    assert (printed.out, printed.err.count("\n")) == ("", 1)
    assert hint in printed.err


def test_launch_names_the_nearest_of_its_own_flags(capsys):
    assert __main__.run(["launch", "--procesess", "2", "smoke"]) == 2
    assert capsys.readouterr().err.endswith("the nearest is --processes\n")


def test_launch_passes_its_flags_to_the_supervisor(monkeypatch):
    calls = []
    monkeypatch.setattr(supervisor, "count_gpus", lambda: 4)
    monkeypatch.setattr(supervisor, "supervise", lambda *arguments: calls.append(arguments[:-1]) or -9)
    flags = ["--processes=3", "--restarts=7", "--hang_minutes=1.5", "--grace_seconds=8"]
    assert __main__.run(["launch", *flags, "smoke", "--workdir", "runs/x"]) == 128 + 9
    patience = supervisor.Patience(restarts=7, hang_seconds=90.0, grace_seconds=8.0)
    command = ["alphagat.main", "smoke", "--workdir", "runs/x"]
    assert calls == [(command, 3, 4, Path("runs/x/metrics.jsonl"), patience)]


@pytest.mark.parametrize("name", ["report", "watch"])
def test_who_looks_at_a_run_leaves_the_accelerator_to_it(name, monkeypatch):
    changed = {}
    monkeypatch.setattr(jax.config, "update", changed.__setitem__)
    assert __main__.run([name, "nowhere"]) == 2
    assert changed["jax_platforms"] == "cpu"


def test_ctrl_c_during_imports_is_one_line(monkeypatch, capsys):
    def interrupt(name: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(importlib, "import_module", interrupt)
    assert __main__.run(["train"]) == 130
    assert capsys.readouterr().err == "interrupted\n"


def wrapped_interrupt() -> ImportError:
    error = ImportError("a module failed")
    error.__cause__ = KeyboardInterrupt()
    return error


@pytest.mark.parametrize(
    ("error", "is_first", "status", "line"),
    [
        (Preempted(is_saved=True), True, 75, "ended by a signal after saving; run the same command to resume\n"),
        (
            Preempted(is_saved=False),
            True,
            75,
            "ended by a signal before the first checkpoint; run the same command to ",
        ),
        (Interrupted(is_saved=True), True, 130, "interrupted after saving; run the same command to resume\n"),
        (Interrupted(is_saved=False), True, 130, "interrupted before the first checkpoint; run the same command to "),
        (Preempted(is_saved=True), False, 75, ""),
        (KeyboardInterrupt(), True, 130, "interrupted here\n"),
        (wrapped_interrupt(), True, 130, "interrupted here\n"),
        (PermissionError(errno.EACCES, "denied", "x"), True, 2, "error: x: denied; use another path\n"),
        (PermissionError(errno.EACCES, "denied"), True, 2, "error: a file: denied; use another path\n"),
        (JointError("no such board", is_reported_here=True), False, 2, "error: no such board\n"),
        (JointError("no such board", is_reported_here=False), True, 2, ""),
    ],
    ids=repr,
)
def test_endings(error, is_first, status, line, monkeypatch, capsys):
    def fail(argv):
        raise error

    said: list[str] = []
    monkeypatch.setattr(distributed, "is_first", lambda: is_first)
    monkeypatch.setattr(distributed, "disconnect", lambda: said.append(capsys.readouterr().err))
    assert commands.run(fail, [], interrupted="interrupted here") == status
    assert bool(said) == isinstance(error, JointError)  # and the line precedes it
    text = said[0] if said else capsys.readouterr().err
    assert text.startswith(line)
    assert text.count("\n") == (1 if line else 0)


def test_a_command_gets_the_other_words(capsys):
    assert __main__.run(["configs", "quickstart"]) == 0
    assert capsys.readouterr().out == (ROOT / "configs" / "quickstart.py").read_text()


@pytest.mark.parametrize(("name", "has_clock"), [("analyze", False), ("gtp", True), ("uci", True)])
def test_help_names_a_clock_where_there_is_one(name, has_clock):
    text = importlib.import_module(f"alphagat.cli.{name}").make_parser().format_help()
    assert ("clock" in text, "maxVisits" in text) == (has_clock, not has_clock)


def test_the_module_and_the_script_are_the_same():
    ended = subprocess.run([sys.executable, "-m", "alphagat", "trian"], capture_output=True, text=True)
    assert (ended.returncode, ended.stderr.partition(":")[0]) == (2, "error")
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    module, _, function = scripts["alphagat"].partition(":")
    assert getattr(importlib.import_module(module), function) is __main__.main


def run_script(code: str, *, encoding: str = "utf-8", unbuffered: str = "", **streams) -> subprocess.CompletedProcess:
    variables = {**os.environ, "PYTHONUNBUFFERED": unbuffered, "PYTHONIOENCODING": encoding}
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **streams}
    return subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=variables, text=True, **streams)


@pytest.mark.parametrize("output", ["sys.stdout.write(text)", "rich.console.Console().print(text)"])
def test_output_that_is_not_utf8_is_escaped(output):
    code = f"""if True:
        import sys
        import rich.console
        from alphagat.cli import commands

        def show(argv):
            text = "rün ≥ 1\\n"
            {output}

        commands.end(commands.run(show, []))
    """
    ended = run_script(code, encoding="ascii")
    assert (ended.returncode, ended.stdout.strip(), ended.stderr) == (0, r"r\xfcn \u2265 1", "")


def run_alphagat(*words: str, unbuffered: str = "", **streams) -> subprocess.CompletedProcess:
    code = f"import sys; from alphagat import __main__; sys.argv[1:] = {words}; __main__.main()"
    return run_script(code, unbuffered=unbuffered, **streams)


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("words", [[], ["--help"], ["--version"], ["configs"], ["train", "--help"]], ids=str)
def test_an_output_that_fails_is_one_line(words, unbuffered):
    with open("/dev/full", "w") as full:
        ended = run_alphagat(*words, unbuffered=unbuffered, stdout=full)
    line = "error: a file: no space left on device; free some and run the command again\n"
    assert (ended.returncode, ended.stderr) == (1, line)


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("words", [["--help"], ["configs"], ["train", "--help"]], ids=str)
def test_a_closed_pipe_is_quiet(words, unbuffered):
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "w") as pipe:
        ended = run_alphagat(*words, unbuffered=unbuffered, stdout=pipe)
    assert (ended.returncode, ended.stderr) == (1, "")


@pytest.mark.parametrize(
    ("error", "status"),
    [("Preempted()", 75), ("KeyboardInterrupt()", 130), ("UserError('x')", 2), ("DiskError('x')", 1)],
)
def test_a_failing_standard_error_keeps_the_status(error, status):
    code = f"""if True:
        from alphagat.cli import commands
        from alphagat.errors import DiskError, UserError
        from alphagat.runtime.preemption import Preempted

        def fail(argv):
            raise {error}

        commands.end(commands.run(fail, [], interrupted="interrupted"))
    """
    with open("/dev/full", "w") as full:
        ended = run_script(code, stderr=full)
    assert (ended.returncode, ended.stdout) == (status, "")


@pytest.mark.parametrize(("closed", "status"), [(">&-", 0), ("2>&-", 0), (">&- 2>&-", 0), ("none 2>&-", 2)])
def test_closed_streams_are_no_error(closed, status):
    command = f"{sys.executable} -m alphagat configs {closed}"
    ended = subprocess.run(["sh", "-c", command], cwd=ROOT, capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (status, "")


def test_no_file_takes_the_place_of_a_closed_stream(tmp_path):
    occupy = "from alphagat import __main__; __main__._occupy_closed_streams()"
    code = f"{occupy}; print(open({str(tmp_path / 'file')!r}, 'w').fileno())"
    words = ["sh", "-c", f'{sys.executable} -c "$0" <&- 2>&-', code]
    ended = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
    assert int(ended.stdout) > 2


def test_networks_and_rules_have_32_bits(monkeypatch):
    monkeypatch.setenv("JAX_ENABLE_X64", "1")
    found = []
    assert commands.run(lambda _: found.append(os.environ.get("JAX_ENABLE_X64")), []) == 0
    assert found == [None]


def test_configs_are_listed_with_a_summary(capsys):
    assert __main__.run(["configs"]) == 0
    rows = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines())
    assert list(rows) == sorted(file.stem for file in (ROOT / "configs").glob("*.py"))
    assert rows["quickstart"] == "Hex 5x5 in a few minutes on two cores."


def test_a_printed_config_is_a_config(tmp_path, capsys):
    assert __main__.run(["configs", "smoke"]) == 0
    (tmp_path / "mine.py").write_text(capsys.readouterr().out)
    assert isinstance(runpy.run_path(str(tmp_path / "mine.py"))["get_config"](), Config)


def test_an_unknown_config_is_one_line(capsys):
    assert __main__.run(["configs", "none"]) == 2
    assert capsys.readouterr().err.startswith("error: none: there is no such config; configs are 2048, ")


@pytest.fixture(scope="module")
def bash_script(tmp_path_factory) -> Path:
    if not shutil.which("bash"):
        pytest.skip("bash is not installed")
    file = tmp_path_factory.mktemp("bash") / "completion"
    file.write_text(completion.shtab.complete(completion.whole_parser(), "bash"))
    return file


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("tr", {"train"}),
        ("ma", {"match"}),
        ("train qui", {"quickstart"}),
        ("train smoke --config.search.num_sim", {"--config.search.num_simulations"}),
        ("launch --config.search.algo", {"--config.search.algorithm"}),
        ("launch qui", {"quickstart"}),
        ("launch smoke --work", {"--workdir"}),
        ("launch smoke --workdir READ", {"README.md"}),
        ("pretrain smoke --games READ", {"README.md"}),
        ("train smoke --config.search.algorithm g", {"gumbel"}),
        ("match runs/a runs/b --sp", {"--sprt"}),
        ("match READ", {"README.md"}),
        ("match runs/a READ", {"README.md"}),
        ("report runs/a READ", {"README.md"}),
        ("evaluate READ", {"README.md"}),
        ("configs tic", {"tic_tac_toe"}),
        ("completion f", {"fish"}),
    ],
)
def test_bash_completes(words, expected, bash_script):
    line = f"alphagat {words}".split()
    program = (
        f"source {bash_script}; COMP_WORDS=({' '.join(line)}); COMP_CWORD={len(line) - 1}; _shtab_alphagat;"
        'printf "%s\\n" "${COMPREPLY[@]}"'
    )
    ended = subprocess.run(["bash", "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert set(ended.stdout.split()) == expected


@pytest.mark.parametrize("shell", completion.SHELLS)
def test_completion_is_printed(shell, capsys):
    assert __main__.run(["completion", shell]) == 0
    text = capsys.readouterr().out
    assert all(name in text for name in COMMANDS)
    assert "config.search.num_simulations" in text
