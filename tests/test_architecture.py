"""How the house hangs together, read from the source: imports point one way, pages are short, no room leaks.

The layers are those of the design. Imports inside functions and under TYPE_CHECKING count like all others: an arrow
that points back is one wherever it stands.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[1]
MAX_PAGE_LINES = 150
MAX_MODULE_LINES = 375  # the aim is 350; one more sentence of a docstring is no reason to split a module

LAYERS = [
    {"pages", "app"},
    {"merit.ui"},
    {"merit.__main__", "merit.cli", "merit.live", "merit.jobs", "merit.streams", "merit.crystallization",
     "merit.telling", "merit.retrievals", "merit.routing", "merit.comparison", "merit.recordings"},
    {"merit.repair", "merit.replaying", "merit.judging", "merit.generation", "merit.waiting", "merit.trace",
     "merit.events", "merit.story", "merit.chain", "merit.playback", "merit.wholeness"},
    {"merit.memory", "merit.verification", "merit.models", "merit.prompts", "merit.extraction", "merit.answer_regions",
     "merit.diagnosis",
     "merit.strategy", "merit.statistics", "merit.sql_change", "merit.sql_words", "merit.sql_trees", "merit.prose"},
    {"merit.database"},
    {"merit.episode", "merit.settings", "merit.errors", "merit.sql_lexing"},
]  # fmt: skip
LEVEL = {room: level for level, layer in enumerate(LAYERS) for room in layer}

WITHIN = {
    ("merit.__main__", "merit.cli"),
    ("merit.cli", "merit.live"),
    ("merit.cli", "merit.telling"),
    ("merit.retrievals", "merit.live"),
    ("merit.crystallization", "merit.streams"),
    ("merit.cli", "merit.streams"),
    ("merit.cli", "merit.crystallization"),
    ("merit.comparison", "merit.live"),
    ("merit.routing", "merit.streams"),
    ("merit.recordings", "merit.live"),
    ("merit.cli", "merit.recordings"),
    ("merit.playback", "merit.events"),
    ("merit.repair", "merit.events"),
    ("merit.story", "merit.events"),
    ("merit.chain", "merit.story"),
    ("merit.chain", "merit.events"),
    ("merit.repair", "merit.judging"),
    ("merit.repair", "merit.generation"),
    ("merit.repair", "merit.waiting"),
    ("merit.judging", "merit.waiting"),
    ("merit.generation", "merit.waiting"),
    ("merit.replaying", "merit.events"),
    ("merit.trace", "merit.events"),
    ("merit.trace", "merit.wholeness"),
    ("merit.wholeness", "merit.events"),
    ("merit.memory", "merit.strategy"),
    ("merit.prompts", "merit.extraction"),
    ("merit.prompts", "merit.answer_regions"),
    ("merit.extraction", "merit.answer_regions"),
    ("merit.extraction", "merit.prose"),
    ("merit.sql_change", "merit.sql_trees"),
    ("merit.sql_words", "merit.sql_change"),
}
"""Arrows inside one layer: the finer part first."""


def sources() -> list[Path]:
    return [
        REPOSITORY / "app.py",
        *sorted((REPOSITORY / "pages").glob("*.py")),
        *sorted((REPOSITORY / "merit").rglob("*.py")),
    ]


def module_of(file: Path) -> str:
    parts = list(file.relative_to(REPOSITORY).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def room_of(module: str) -> str:
    """The room a module belongs to: a page, or the part of merit on its top level."""
    parts = module.split(".")
    return parts[0] if parts[0] != "merit" else ".".join(parts[:2])


def imported(file: Path) -> Iterator[tuple[str, int]]:
    """Every module of ours and streamlit that a file imports anywhere, with the line."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file} imports relative to itself"
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                yield (whole if node.module == "merit" else str(node.module)), node.lineno
        elif (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name | ast.Attribute)
            and (node.func.id if isinstance(node.func, ast.Name) else node.func.attr) == "import_module"
            and node.args
            and isinstance(node.args[0], ast.Constant)
        ):
            yield str(node.args[0].value), node.lineno


def offences(file: Path) -> list[str]:
    module = module_of(file)
    room = room_of(module)
    found = []
    for name, line in imported(file):
        if name.split(".")[0] not in ("merit", "pages", "app"):
            continue
        target = room_of(name)
        if target == room or room == "merit" or (target == "merit" and room in ("merit.cli", "merit.streams")):
            continue  # inside one room; the package's own lazy table; the version
        if target not in LEVEL:
            found.append(f"{module}:{line} imports {name}, which is on no layer")
        elif LEVEL[target] < LEVEL[room] or (LEVEL[target] == LEVEL[room] and (room, target) not in WITHIN):
            found.append(f"{module}:{line} imports {name}, an arrow that points back")
    return found


def test_every_room_has_a_layer() -> None:
    rooms = {room_of(module_of(file)) for file in sources() if file.exists()} - {"merit"}
    assert rooms <= LEVEL.keys(), f"say on which layer: {sorted(rooms - LEVEL.keys())}"


def test_imports_point_one_way() -> None:
    found = {offence for file in sources() if file.exists() for offence in offences(file)}
    assert found == set()


def test_the_layers_themselves_have_no_circle() -> None:
    for finer, coarser in WITHIN:
        assert LEVEL[finer] == LEVEL[coarser]
        assert (coarser, finer) not in WITHIN


def test_streamlit_stays_in_the_pages_and_in_merit_ui() -> None:
    found = [
        f"{module_of(file)}:{line}"
        for file in sources()
        if file.exists() and room_of(module_of(file)) not in ("app", "pages", "merit.ui")
        for name, line in imported(file)
        if name.split(".")[0] == "streamlit"
    ]
    assert found == []


HEAVY = {"torch", "transformers", "sentence_transformers", "peft", "bitsandbytes", "accelerate"}


def test_model_libraries_are_imported_inside_functions_only() -> None:
    """A module that is itself run in a process of its own may import what it needs at its top."""
    found = []
    for file in sources():
        if not file.exists() or "embedded_training" in file.parts:
            continue
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [str(node.module)]
                found += [f"{module_of(file)}: {name}" for name in names if name.split(".")[0] in HEAVY]
    assert found == []


@pytest.mark.parametrize("file", [REPOSITORY / "app.py", *sorted((REPOSITORY / "pages").glob("*.py"))], ids=str)
def test_a_page_is_short_and_has_no_helpers(file: Path) -> None:
    if not file.exists():
        pytest.skip(f"{file.name} is not built yet")
    text = file.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= MAX_PAGE_LINES
    helpers = [node.name for node in ast.parse(text).body if isinstance(node, ast.ClassDef)]
    assert helpers == []


def test_modules_are_one_idea_each() -> None:
    long = {
        module_of(file): lines
        for file in sources()
        if file.exists()
        and (lines := len(file.read_text(encoding="utf-8").splitlines())) > MAX_MODULE_LINES
        and "sample_source" not in file.parts
    }
    assert long == {}


@pytest.mark.parametrize(
    ("module", "line", "says"),
    [
        ("merit/database/x.py", "from merit.memory.store import MemoryStore", "points back"),
        ("merit/database/x.py", "def f():\n    import merit.repair", "points back"),
        ("merit/models/x.py", "from merit.verification import Verifier", "points back"),
        ("merit/memory/x.py", "from merit import cli", "points back"),
        ("merit/episode.py", "if TYPE_CHECKING:\n    from merit.events import Event", "points back"),
        ("merit/jobs.py", "from importlib import import_module\nimport_module('merit.ui.theme')", "points back"),
        ("merit/live.py", "from merit.brandnew import x", "no layer"),
        ("merit/ui/x.py", "import app", "points back"),
    ],
)
def test_an_arrow_that_points_back_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str, line: str, says: str
) -> None:
    monkeypatch.setattr("test_architecture.REPOSITORY", tmp_path)
    file = tmp_path / module
    file.parent.mkdir(parents=True)
    file.write_text(line)
    (offence,) = offences(file)
    assert says in offence
