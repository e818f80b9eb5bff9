"""Breaks the package in many small ways, one at a time, and lists the mutants that no test notices.

    python benchmarks/mutants.py --count 320 --seed 0              # over the packages below, on two processes
    python benchmarks/mutants.py --only alphagat/replay --count 20
    python benchmarks/mutants.py --again survivors.txt             # only the mutants listed in a file, after new tests

A mutant is one change of one expression: a sign, a comparison, a constant, a dropped or swapped argument, a swapped
field, a skipped statement. Messages, annotations and assertions stay as they are. The mutants are drawn evenly from all
changes that the operators below find, by a seed, so two runs draw the same ones.

A first pass without changes runs each test file, and records its time and the functions that it calls. Each mutant then
runs the files of its package that call the changed function, the module's own file and then the fastest first, until a
test fails; a time-out counts as noticed. Calls on import and in other processes are not recorded: a function without
any recorded call runs all files of its package. Needs Python 3.12 or newer, for `sys.monitoring`.
"""

import argparse
import ast
import collections
import contextlib
import json
import multiprocessing
import os
import random
import shutil
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
LIMIT = 3  # on the time of a mutant's tests, in times of their time without a change
MARGIN_SECONDS = 90  # added to that, for programs that have to compile again
MARGIN = 30  # characters shown before and after a change
LAST = ["tests/test_semantics.py", "tests/training/test_wiring.py"]
# Test files and folders by package.
TESTS = {
    "alphagat/replay": ["tests/replay", *LAST],
    "alphagat/learner": ["tests/learner", *LAST, "tests/training/test_parallel.py"],
    "alphagat/search": ["tests/search", *LAST, "tests/agents"],
    "alphagat/selfplay": ["tests/selfplay", "tests/training/test_audit.py", *LAST],
    "alphagat/evaluation": ["tests/evaluation", "tests/serving", "tests/cli/test_match.py", "tests/cli/test_rate.py"],
    "alphagat/training": [
        "tests/training",
        "tests/agents/test_agent.py",
        "tests/test_semantics.py",
        "tests/cli/test_doctor.py",
        "tests/cli/test_train.py",
        "tests/cli/test_pretrain.py",
    ],
}
COMPARISONS = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
OPERATORS = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}
COMMUTATIVE = ("max", "maximum", "min", "minimum", "apply_updates")  # calls whose first two arguments are not swapped
UNTOUCHED = (ast.Raise, ast.Assert, ast.JoinedStr, ast.Import, ast.ImportFrom)
TEXT_CALLS = ("assert_", "print", "warn", "log", "UserError", "refusal")  # their arguments are for people


class Mutant(NamedTuple):
    """One change of one file."""

    file: str
    line: int
    function: str  # qualified name of the changed function; empty outside of functions
    what: str
    text: str  # the whole changed file

    @property
    def name(self) -> str:
        return f"{self.file}:{self.line}: {self.what}"


class Result(NamedTuple):
    noticed_by: str  # empty if no test failed
    seconds: float
    functions: set[str]  # called by the tests, as `FILE:QUALIFIED_NAME`; empty unless recorded


class Task(NamedTuple):
    """Test files to run, on a mutant or on the package as it is."""

    files: list[str]
    limit: float  # seconds
    mutant: Mutant | None = None


def replacements(node: ast.AST, fields: dict[str, str]) -> Iterator[ast.AST]:
    """Yields the changed versions of `node`; `fields` maps the name of a field to a sibling of the same type."""
    match node:
        case ast.Compare(left, [op], comparators) if type(op) in COMPARISONS:
            yield ast.Compare(left, [COMPARISONS[type(op)]()], comparators)
        case ast.BinOp(left, op, right) if type(op) in OPERATORS:
            yield ast.BinOp(left, OPERATORS[type(op)](), right)
        case ast.UnaryOp(ast.USub() | ast.Not() | ast.Invert(), operand):
            yield operand
        case ast.BoolOp(op, values):
            yield ast.BoolOp(ast.Or() if isinstance(op, ast.And) else ast.And(), values)
        case ast.IfExp(test, body, orelse):
            yield ast.IfExp(test, orelse, body)
        case ast.Constant(bool() as value):
            yield ast.Constant(not value)
        case ast.Constant(int() as value):
            yield ast.Constant(value + 1)
        case ast.Constant(float() as value):
            yield ast.Constant(2 * value + 1)
        case ast.Attribute(value, name, ast.Load()) if name in fields:
            yield ast.Attribute(value, fields[name], ast.Load())
        case ast.Call(function, arguments, keywords):
            yield from call_replacements(function, arguments, keywords)


def call_replacements(function: ast.expr, arguments: list, keywords: list) -> Iterator[ast.Call]:
    named = [keyword for keyword in keywords if keyword.arg is not None]
    name = ast.unparse(function).rpartition(".")[2]
    is_constructor = name[:1].isupper()  # its arguments are required
    for keyword in [] if is_constructor else named:
        yield ast.Call(function, arguments, [other for other in keywords if other is not keyword])
    is_where = isinstance(function, ast.Attribute) and function.attr == "where" and len(arguments) == 3
    if is_where:
        yield ast.Call(function, [arguments[0], arguments[2], arguments[1]], keywords)
    elif (
        len(arguments) >= 2 and name not in COMMUTATIVE and not any(isinstance(each, ast.Starred) for each in arguments)
    ):
        yield ast.Call(function, [arguments[1], arguments[0], *arguments[2:]], keywords)
    if len(named) >= 2:
        first, second = named[:2]
        swapped = [ast.keyword(first.arg, second.value), ast.keyword(second.arg, first.value)]
        yield ast.Call(function, arguments, swapped + [each for each in keywords if each not in (first, second)])


def is_for_people(node: ast.AST) -> bool:
    """Returns whether `node` holds only text, checks or declarations."""
    if isinstance(node, ast.Call):
        name = ast.unparse(node.func).split(".")[-1]
        return name.startswith(TEXT_CALLS)
    return isinstance(node, UNTOUCHED)


def code_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """Yields the nodes below `node`, without messages, annotations, decorators and assertions."""
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "bases", "type_params"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not is_for_people(child):
                yield child
                yield from code_nodes(child)


def sibling_fields() -> dict[str, str]:
    """Maps each field of a named tuple or dataclass to the next field of the same type, if its class has one."""
    siblings: dict[str, str] = {}
    for file in sorted((ROOT / "alphagat").rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ClassDef):
                by_type = collections.defaultdict(list)
                for each in node.body:
                    if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name):
                        by_type[ast.unparse(each.annotation)].append(each.target.id)
                for names in by_type.values():
                    siblings |= dict(zip(names, names[1:] + names[:1], strict=True)) if len(names) > 1 else {}
    return siblings


def skipped_statement(node: ast.AST) -> bool:
    """Returns whether `node` is an assignment that updates a name, such as `x = f(x)`, which can be left out."""
    if not (isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name)):
        return isinstance(node, ast.AugAssign)
    name = node.targets[0].id
    return any(isinstance(each, ast.Name) and each.id == name for each in ast.walk(node.value))


def difference(before: str, after: str) -> str:
    """Returns the parts in which two texts differ, with some characters around them."""
    first = common_length(before, after)
    last = common_length(before[first:][::-1], after[first:][::-1])
    return "  ->  ".join(each[max(first - MARGIN, 0) : len(each) - max(last - MARGIN, 0)] for each in (before, after))


def common_length(first: str, second: str) -> int:
    """Returns the number of leading characters that two texts share."""
    pairs = zip(first, second, strict=False)
    return next((number for number, (a, b) in enumerate(pairs) if a != b), min(len(first), len(second)))


def function_bodies(node: ast.AST, prefix: str = "") -> Iterator[tuple[str, int, int]]:
    """Yields the qualified name, the first and the last line of the body of each function below `node`."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            name = prefix + child.name
            yield name, child.body[0].lineno, child.end_lineno or child.lineno
            yield from function_bodies(child, f"{name}.<locals>.")
        elif isinstance(child, ast.ClassDef):
            yield from function_bodies(child, f"{prefix}{child.name}.")
        else:
            yield from function_bodies(child, prefix)


def mutants_of(file: str, fields: dict[str, str]) -> list[Mutant]:
    """Returns every mutant of one file; `file` is relative to the repository."""
    source = (ROOT / file).read_text()
    lines = source.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line.encode()))

    def changed(node, text: str) -> Mutant:
        data, first = source.encode(), starts[node.lineno - 1] + node.col_offset
        last = starts[node.end_lineno - 1] + node.end_col_offset
        before, after = data[: starts[node.end_lineno]], data[:first] + text.encode() + data[last:]
        rest = len(data) - len(before)
        line = starts[node.lineno - 1]
        what = difference(
            *(" ".join(each.decode().split()) for each in (before[line:], after[line : len(after) - rest]))
        )
        return Mutant(file, node.lineno, function_at(node.lineno), what, after.decode())

    def function_at(line: int) -> str:
        around = [name for name, first, last in bodies if first <= line <= last]
        return max(around, key=len, default="")

    tree = ast.parse(source)
    bodies = list(function_bodies(tree))
    made = []
    for node in code_nodes(tree):
        if skipped_statement(node):
            made.append(changed(node, "pass"))
        made += [changed(node, f"({ast.unparse(new)})") for new in replacements(node, fields)]
    return [each for each in made if each.text != source]


def files_of(package: str) -> list[str]:
    """Returns the Python files of a package, relative to the repository."""
    return [str(file.relative_to(ROOT)) for file in sorted((ROOT / package).rglob("*.py"))]


def all_mutants() -> list[Mutant]:
    """Returns every mutant of the code."""
    fields = sibling_fields()
    files = dict.fromkeys(file for package in TESTS for file in files_of(package))
    return [mutant for file in files for mutant in mutants_of(file, fields)]


def named(names: list[str]) -> list[Mutant]:
    """Returns the mutants with these names. Exits if the code has no mutant of a name, such as after a change."""
    found = {mutant.name: mutant for mutant in all_mutants()}
    if unknown := [name for name in names if name not in found]:
        sys.exit(f"no such mutants: {', '.join(unknown)}")
    return [found[name] for name in names]


def draw(packages: list[str], count: int, seed: int) -> list[Mutant]:
    """Draws `count` mutants: the same number from each package as far as it has them, then from the largest."""
    fields, generator, drawn = sibling_fields(), random.Random(seed), []
    for number, package in enumerate(sorted(packages, key=lambda each: len(list((ROOT / each).rglob("*.py"))))):
        found = [mutant for file in files_of(package) for mutant in mutants_of(file, fields)]
        share = (count - len(drawn)) // (len(packages) - number)
        drawn += generator.sample(found, min(share, len(found)))
    return drawn


def test_files(paths: list[str]) -> list[str]:
    """Returns the test files among `paths` and in its folders."""
    found = [
        file
        for path in paths
        for file in (sorted((ROOT / path).rglob("test_*.py")) if (ROOT / path).is_dir() else [ROOT / path])
    ]
    return list(dict.fromkeys(str(file.relative_to(ROOT)) for file in found))


def package_of(file: str) -> str:
    return next(each for each in TESTS if file.startswith(each + "/"))


def task_of(mutant: Mutant, unchanged: dict[str, Result]) -> Task:
    """Returns the tests of a mutant; `unchanged` has the results of each test file without a change."""
    files = test_files(TESTS[package_of(mutant.file)])
    function = f"{mutant.file}:{mutant.function}"
    calling = [each for each in files if function in unchanged[each].functions] or files
    own = f"test_{Path(mutant.file).name}"
    calling.sort(key=lambda each: (Path(each).name != own, unchanged[each].seconds))
    return Task(calling, LIMIT * sum(unchanged[each].seconds for each in calling) + MARGIN_SECONDS, mutant)


def record_functions(tree: str) -> set[str]:
    """Returns a set that fills with the functions of the package as this process calls them."""
    called, package, monitoring = set[str](), f"{tree}/alphagat/", sys.monitoring  # pyright: ignore[reportAttributeAccessIssue]

    def add(code, _) -> object:
        if code.co_filename.startswith(package):
            called.add(f"{code.co_filename[len(tree) + 1 :]}:{code.co_qualname}")
        return monitoring.DISABLE  # the first call suffices

    monitoring.use_tool_id(monitoring.COVERAGE_ID, "mutants")
    monitoring.register_callback(monitoring.COVERAGE_ID, monitoring.events.PY_START, add)
    monitoring.set_events(monitoring.COVERAGE_ID, monitoring.events.PY_START)
    return called


def run_tests(tree: str, task: Task, report: str) -> None:
    """Runs the tests in the calling process, until one fails; writes that one and the called functions to `report`."""
    os.chdir(tree)
    os.environ["PYTHONPATH"] = tree
    sys.path[:0] = [tree]
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), 1)
        os.dup2(nowhere.fileno(), 2)
    import pytest

    called = set() if task.mutant else record_functions(tree)
    failed: list[str] = []

    class Notice:
        @pytest.hookimpl(trylast=True)
        def pytest_collection_modifyitems(self, items):
            called.clear()  # of the imports
            if not task.mutant:
                sys.monitoring.restart_events()  # pyright: ignore[reportAttributeAccessIssue]
            items.sort(key=lambda item: task.files.index(item.nodeid.partition("::")[0]))

        def pytest_runtest_logreport(self, report):
            failed.extend([report.nodeid] if report.failed else [])

        def pytest_collectreport(self, report):
            failed.extend([report.nodeid] if report.failed else [])

    status = pytest.main(["-x", "-q", "-p", "no:cacheprovider", *task.files], plugins=[Notice()])
    if status and not failed:
        failed.append(f"pytest ended with status {int(status)}")
    Path(report).write_text(json.dumps({"noticed_by": failed[0] if failed else "", "functions": sorted(called)}))
    os._exit(0)


def judge(tree: str, task: Task) -> Result:
    """Runs a task in a fork and in the copy of the repository in `tree`, which is the same afterwards."""
    start = time.monotonic()
    with changed_file(tree, task.mutant), tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report"
        child = multiprocessing.get_context("fork").Process(target=run_tests, args=(tree, task, str(report)))
        child.start()
        child.join(task.limit)
        if child.is_alive():
            child.kill()
            child.join()
            said = {"noticed_by": "time-out", "functions": ()}
        elif report.exists():
            said = json.loads(report.read_text())
        else:
            said = {"noticed_by": f"exit status {child.exitcode}", "functions": ()}
    return Result(said["noticed_by"], time.monotonic() - start, set(said["functions"]))


@contextlib.contextmanager
def changed_file(tree: str, mutant: Mutant | None) -> Iterator[None]:
    if mutant is None:
        yield
        return
    file = Path(tree) / mutant.file
    original = file.read_text()
    file.write_text(mutant.text)
    try:
        yield
    finally:
        file.write_text(original)


def work(tree: str, compiled: str, tasks, results) -> None:
    """Judges mutants until the queue is empty. Libraries are imported once, before any device is used, and forked."""
    os.environ |= {
        "JAX_PLATFORMS": "cpu",
        "JAX_COMPILATION_CACHE_DIR": compiled,
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0.1",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
        "XLA_FLAGS": "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true",
        "PYTEST_XDIST_WORKER": "mutants",  # tests/conftest.py then keeps these settings
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    sys.dont_write_bytecode = True
    warnings.filterwarnings("ignore", message=".*fork")
    import chex  # noqa: F401
    import flax.linen  # noqa: F401
    import jraph  # noqa: F401
    import mctx  # noqa: F401
    import optax  # noqa: F401
    import orbax.checkpoint  # noqa: F401
    import pytest  # noqa: F401

    while (numbered := tasks.get()) is not None:
        number, task = numbered
        results.put((number, judge(tree, task)))


def run_all(tasks: list[Task], num_processes: int, compiled: str) -> Iterator[tuple[Task, Result]]:
    """Runs tasks on several processes, each with its own copy of the repository; yields them as they end.

    Args:
      compiled: the folder of the compilation cache.
    """
    context = multiprocessing.get_context("spawn")
    queue, results = context.Queue(), context.Queue()
    for numbered in [*enumerate(tasks), *[None] * num_processes]:
        queue.put(numbered)
    with tempfile.TemporaryDirectory() as folder:
        for number in range(num_processes):
            tree = f"{folder}/{number}"
            shutil.copytree(ROOT, tree, ignore=shutil.ignore_patterns(".git", ".venv", "build", "*.egg-info"))
            context.Process(target=work, args=(tree, compiled, queue, results)).start()
        for _ in tasks:
            number, result = results.get()
            yield tasks[number], result


def run_unchanged(packages: set[str], num_processes: int, compiled: str) -> dict[str, Result]:
    """Returns the result of each test file without a change, and fills the compilation cache. Exits if a test fails."""
    files = test_files([path for package in sorted(packages) for path in TESTS[package]])
    found = {}
    for task, result in run_all([Task([file], 900) for file in files], num_processes, compiled):
        (file,) = task.files
        print(f"{result.seconds:4.0f} s  {len(result.functions):4} functions  {file} without a change", flush=True)
        if result.noticed_by:
            sys.exit(f"a test fails without any change: {result.noticed_by}")
        found[file] = result
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=320, help="number of mutants (default: 320)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="+", choices=list(TESTS), default=list(TESTS), help="packages to break")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--again", type=Path, metavar="FILE", help="run only the mutants whose names stand in FILE")
    parser.add_argument("--out", type=Path, default=Path("survivors.txt"), help="where to write the survivors' names")
    options = parser.parse_args()
    if options.again:
        mutants = named(options.again.read_text().splitlines())
    else:
        mutants = draw(options.only, options.count, options.seed)
    survivors = []
    with tempfile.TemporaryDirectory() as compiled:
        unchanged = run_unchanged({package_of(mutant.file) for mutant in mutants}, options.processes, compiled)
        tasks = [task_of(mutant, unchanged) for mutant in mutants]
        for number, (task, result) in enumerate(run_all(tasks, options.processes, compiled), 1):
            assert task.mutant
            verdict = result.noticed_by or f"SURVIVED {len(task.files)} files"
            print(f"{number}/{len(mutants)} {result.seconds:.0f} s  {task.mutant.name}\n        {verdict}", flush=True)
            if not result.noticed_by:
                survivors.append(task.mutant.name)
    options.out.write_text("".join(f"{name}\n" for name in sorted(survivors)))
    share = 1 - len(survivors) / max(len(mutants), 1)
    print(f"{len(mutants)} mutants, {share:.1%} noticed, {len(survivors)} survivors in {options.out}")


if __name__ == "__main__":
    main()
