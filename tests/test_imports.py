"""Checks the import directions between packages by parsing the source."""

import ast
import collections
import graphlib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "alphagat"
# Maps a package to the packages of AlphaGAT that it may import, besides itself.
MAY_IMPORT = {
    "runtime": set(),
    "graphs": set(),
    "games": {"graphs"},
    "networks": {"graphs"},
    "search": {"games", "networks"},
    "selfplay": {"games", "search"},
    "replay": set(),
    "learner": {"networks"},
    "evaluation": {"games", "search"},
    "runs": set(),
    "agents": {"games", "networks", "search", "evaluation", "runs"},
    "monitoring": {"evaluation", "runs"},
    "contests": {"games", "evaluation", "runs", "agents", "monitoring"},
    "training": {
        *("graphs", "games", "networks", "search", "selfplay", "replay", "learner"),
        *("evaluation", "runs", "agents", "monitoring", "reporting"),
    },
    "serving": {"games", "networks", "search", "evaluation", "runs", "agents", "reporting"},
    "cli": {
        "alphagat",
        "games",
        "evaluation",
        "runs",
        "agents",
        "monitoring",
        "contests",
        "training",
        "serving",
        "reporting",
    },
    "reporting": {"games", "evaluation", "runs", "agents", "monitoring"},
}
BENEATH_ALL = {
    "bounded_json",
    "bounds",
    "config",
    "config_fields",
    "config_files",
    "config_validation",
    "errors",
    "network_traits",
    "opponents",
    "runtime",
    "wording",
}
CONFIG = {
    "config",
    "config_fields",
    "config_files",
    "config_validation",
}  # only these and the commands may import it
SEE_CONFIG = {"cli", "serving", "runs", "agents", "monitoring", "contests", "training", "reporting"}
MOST_FILES, MOST_TRAINING_FILES = 25, 20  # Python files per folder, excluding subfolders
HEAVY = {"jax", "jaxlib", "flax", "optax", "mctx", "jraph", "orbax", "chex", "tensorboardX"}
FILES = sorted(PACKAGE.rglob("*.py"))


def imported(node: ast.AST) -> Iterator[str]:
    """Returns every module, dotted, that an import statement may load."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        assert node.level == 0, f"line {node.lineno}: relative import"
        assert node.module
        yield from (f"{node.module}.{alias.name}" for alias in node.names)


def parts_imported(file: Path) -> set[str]:
    """Returns the parts of AlphaGAT that a file imports anywhere: packages and top-level modules."""
    names = [name.split(".") for node in ast.walk(ast.parse(file.read_text())) for name in imported(node)]
    return {name[1] if len(name) > 1 else "alphagat" for name in names if name[0] == "alphagat"}


def imported_when_loaded(file: Path) -> Iterator[str]:
    """Returns the imports that run when a file is loaded: outside functions and `if TYPE_CHECKING`."""
    pending: list[ast.AST] = list(ast.parse(file.read_text()).body)
    while pending:
        node = pending.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            pending += node.orelse
            continue
        yield from imported(node)
        pending += ast.iter_child_nodes(node)


def files_of(name: str) -> Iterator[Path]:
    """Yields the files that importing a dotted name of AlphaGAT loads: the module and the packages above it."""
    path = ROOT
    for part in name.split("."):
        path = path / part
        for file in (path / "__init__.py", path.with_suffix(".py")):
            if file.is_file():
                yield file


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(PACKAGE)))
def test_import_direction(file: Path):
    package = file.relative_to(PACKAGE).parts[0]
    parts = parts_imported(file)
    if package in MAY_IMPORT:
        allowed = MAY_IMPORT[package] | {package} | BENEATH_ALL - (set() if package in SEE_CONFIG else CONFIG)
        assert parts <= allowed
    elif package.removesuffix(".py") in BENEATH_ALL:
        assert parts <= BENEATH_ALL


def test_every_package_has_a_row():
    packages = {path.name for path in PACKAGE.iterdir() if path.is_dir() and any(path.glob("*.py"))}
    assert packages == set(MAY_IMPORT)


def test_commands_parse_flags_before_heavy_imports():
    pending, seen = [PACKAGE / "__main__.py", PACKAGE / "cli" / "train.py"], set()
    while pending:
        file = pending.pop()
        if file in seen:
            continue
        seen.add(file)
        names = list(imported_when_loaded(file))
        assert not HEAVY & {name.split(".")[0] for name in names}, file
        pending += [each for name in names if name.split(".")[0] == "alphagat" for each in files_of(name)]
    assert PACKAGE / "config_validation.py" in seen


def test_no_import_cycle():
    """Counts every import, including those inside functions and for type checkers."""
    graph = {module_of(file): modules_imported(file) for file in FILES}
    sorter = graphlib.TopologicalSorter(graph)
    try:
        sorter.prepare()
    except graphlib.CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))


def test_folders_stay_small():
    sizes = collections.Counter(file.parent for file in FILES)
    assert max(sizes.values()) <= MOST_FILES
    assert sizes[PACKAGE / "training"] <= MOST_TRAINING_FILES


def module_of(file: Path) -> str:
    return ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def modules_imported(file: Path) -> set[str]:
    """Returns the modules that a file's import statements name, without the packages above them."""
    names = [name for node in ast.walk(ast.parse(file.read_text())) for name in imported(node)]
    modules = (next((each for each in (name, name.rpartition(".")[0]) if each in MODULES), None) for name in names)
    return {module for module in modules if module and module != module_of(file)}


MODULES = {module_of(file) for file in FILES}
