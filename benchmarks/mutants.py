"""Breaks the package in many small ways, one at a time, and lists the mutants that no test notices.

    python benchmarks/mutants.py --count 320 --seed 0              # over the packages below, on two processes
    python benchmarks/mutants.py --only alphagat/replay --count 20
    python benchmarks/mutants.py --again survivors.txt             # only the mutants listed in a file, after new tests

A mutant is one change of one expression: a sign, a comparison, a constant, a dropped or swapped argument, a swapped
field, a skipped statement. Messages, annotations and assertions stay as they are. Each mutant runs the tests of its
package, fast files first, until one fails; a time-out counts as noticed. The mutants are drawn evenly from all changes
that the operators below find, by a seed, so two runs draw the same ones.
"""

import argparse
import ast
import collections
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
SECONDS = 900  # limit per mutant
MARGIN = 30  # characters shown before and after a change
LAST = ["tests/test_semantics.py", "tests/training/test_wiring.py"]
# Test files and folders by package, in the order in which they run.
TESTS = {
    "alphagat/replay": ["tests/replay", *LAST],
    "alphagat/learner": ["tests/learner", *LAST, "tests/training/test_parallel.py"],
    "alphagat/search": ["tests/search", *LAST, "tests/agents"],
    "alphagat/selfplay": ["tests/selfplay", "tests/training/test_audit.py", *LAST],
    "alphagat/evaluation": ["tests/evaluation", "tests/serving", "tests/test_match.py", "tests/test_rate.py"],
    "alphagat/training": ["tests/training", "tests/test_semantics.py", "tests/test_main.py", "tests/test_pretrain.py"],
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
UNTOUCHED = (ast.Raise, ast.Assert, ast.JoinedStr, ast.Import, ast.ImportFrom)
TEXT_CALLS = ("assert_", "print", "warn", "log", "UserError", "refusal")  # their arguments are for people


class Mutant(NamedTuple):
    """One change of one file."""

    file: str
    line: int
    what: str
    text: str  # the whole changed file

    @property
    def name(self) -> str:
        return f"{self.file}:{self.line}: {self.what}"


class Result(NamedTuple):
    mutant: Mutant
    noticed_by: str  # empty if no test failed
    seconds: float


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
    is_constructor = ast.unparse(function).rpartition(".")[2][:1].isupper()  # its arguments are required
    for keyword in [] if is_constructor else named:
        yield ast.Call(function, arguments, [other for other in keywords if other is not keyword])
    is_where = isinstance(function, ast.Attribute) and function.attr == "where" and len(arguments) == 3
    if is_where:
        yield ast.Call(function, [arguments[0], arguments[2], arguments[1]], keywords)
    elif len(arguments) >= 2 and not any(isinstance(each, ast.Starred) for each in arguments):
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
        return Mutant(file, node.lineno, what, after.decode())

    made = []
    for node in code_nodes(ast.parse(source)):
        if skipped_statement(node):
            made.append(changed(node, "pass"))
        made += [changed(node, f"({ast.unparse(new)})") for new in replacements(node, fields)]
    return [each for each in made if each.text != source]


def draw(packages: list[str], count: int, seed: int) -> list[Mutant]:
    """Draws `count` mutants: the same number from each package as far as it has them, then from the largest."""
    fields, generator, drawn = sibling_fields(), random.Random(seed), []
    for number, package in enumerate(sorted(packages, key=lambda each: len(list((ROOT / each).rglob("*.py"))))):
        files = [str(file.relative_to(ROOT)) for file in sorted((ROOT / package).rglob("*.py"))]
        found = [mutant for file in files for mutant in mutants_of(file, fields)]
        share = (count - len(drawn)) // (len(packages) - number)
        drawn += generator.sample(found, min(share, len(found)))
    return drawn


def package_of(file: str) -> str:
    return next(each for each in TESTS if file.startswith(each + "/"))


def tests_of(file: str) -> list[str]:
    """Returns the tests for a file: the file named after it first, then those of its package."""
    package = package_of(file)
    own = file.replace("alphagat/", "tests/").replace(Path(file).name, f"test_{Path(file).name}")
    return [own, *TESTS[package]] if (ROOT / own).exists() else TESTS[package]


def run_tests(tree: str, mutant: Mutant, report: str) -> None:
    """Runs the tests in the calling process, until one fails, and writes its name to the file `report`."""
    os.chdir(tree)
    os.environ["PYTHONPATH"] = tree
    sys.path[:0] = [tree]
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), 1)
        os.dup2(nowhere.fileno(), 2)
    import pytest

    tests = tests_of(mutant.file)

    class Notice:
        @pytest.hookimpl(trylast=True)
        def pytest_collection_modifyitems(self, items):
            items.sort(key=lambda item: next(n for n, each in enumerate(tests) if item.nodeid.startswith(each)))

        def pytest_runtest_logreport(self, report):
            if report.failed:
                write(report.nodeid)

        def pytest_collectreport(self, report):
            if report.failed:
                write(report.nodeid)

    def write(name: str) -> None:
        with open(report, "a") as file:
            file.write(name + "\n")

    status = pytest.main(["-x", "-q", "-p", "no:cacheprovider", *tests], plugins=[Notice()])
    if status and not Path(report).exists():
        write(f"pytest ended with status {int(status)}")
    os._exit(0)


def judge(tree: str, mutant: Mutant) -> Result:
    """Applies `mutant` to the copy of the repository in `tree`, runs its tests in a fork, and restores the file."""
    file, start = Path(tree) / mutant.file, time.monotonic()
    original = file.read_text()
    file.write_text(mutant.text)
    with tempfile.TemporaryDirectory() as folder:
        report = str(Path(folder) / "noticed")
        child = multiprocessing.get_context("fork").Process(target=run_tests, args=(tree, mutant, report))
        child.start()
        child.join(SECONDS)
        if child.is_alive():
            child.kill()
            child.join()
            noticed = "time-out"
        elif Path(report).exists():
            noticed = Path(report).read_text().splitlines()[0]
        else:
            noticed = "" if child.exitcode == 0 else f"exit status {child.exitcode}"
    file.write_text(original)
    return Result(mutant, noticed, time.monotonic() - start)


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

    while (mutant := tasks.get()) is not None:
        results.put(judge(tree, mutant))


def run_all(mutants: list[Mutant], num_processes: int, compiled: str) -> Iterator[Result]:
    """Judges the mutants on several processes, each with its own copy of the repository.

    Args:
      compiled: the folder of the compilation cache.
    """
    context = multiprocessing.get_context("spawn")
    tasks, results = context.Queue(), context.Queue()
    for mutant in [*mutants, *[None] * num_processes]:
        tasks.put(mutant)
    with tempfile.TemporaryDirectory() as folder:
        for number in range(num_processes):
            tree = f"{folder}/{number}"
            shutil.copytree(ROOT, tree, ignore=shutil.ignore_patterns(".git", ".venv", "build", "*.egg-info"))
            context.Process(target=work, args=(tree, compiled, tasks, results)).start()
        for _ in mutants:
            yield results.get()


def check_tests_pass(packages: list[str], num_processes: int, compiled: str) -> None:
    """Exits if a test fails without any change. Fills the compilation cache, too."""
    unchanged = [Mutant(f"{each}/__init__.py", 0, "", (ROOT / each / "__init__.py").read_text()) for each in packages]
    for result in run_all(unchanged, num_processes, compiled):
        print(f"{result.seconds:4.0f} s  tests of {package_of(result.mutant.file)} without a change", flush=True)
        if result.noticed_by:
            sys.exit(f"a test fails without any change: {result.noticed_by}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=320, help="number of mutants (default: 320)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="+", choices=list(TESTS), default=list(TESTS), help="packages to break")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--again", type=Path, metavar="FILE", help="run only the mutants whose names stand in FILE")
    parser.add_argument("--out", type=Path, default=Path("survivors.txt"), help="where to write the survivors' names")
    options = parser.parse_args()
    mutants = draw(options.only, options.count, options.seed)
    if options.again:
        names = set(options.again.read_text().splitlines())
        mutants = [mutant for mutant in mutants if mutant.name in names]
    survivors = []
    with tempfile.TemporaryDirectory() as compiled:
        check_tests_pass(sorted({package_of(mutant.file) for mutant in mutants}), options.processes, compiled)
        for number, result in enumerate(run_all(mutants, options.processes, compiled), 1):
            verdict = result.noticed_by or "SURVIVED"
            text = f"{number}/{len(mutants)} {result.seconds:.0f} s  {result.mutant.name}\n        {verdict}"
            print(text, flush=True)
            if not result.noticed_by:
                survivors.append(result.mutant.name)
    options.out.write_text("".join(f"{name}\n" for name in sorted(survivors)))
    share = 1 - len(survivors) / max(len(mutants), 1)
    print(f"{len(mutants)} mutants, {share:.1%} noticed, {len(survivors)} survivors in {options.out}")


if __name__ == "__main__":
    main()
