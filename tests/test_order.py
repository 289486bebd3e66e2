"""The order in which the code is read is the order in which it is imported."""

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

import sparse_adapt
from sparse_adapt import READING_ORDER

ROOT = Path(sparse_adapt.__file__).parent
MODULES = sorted(path for path in ROOT.rglob("*.py") if path != ROOT / "__init__.py")


def unit(path: Path) -> str:
    """The entry of READING_ORDER that a file belongs to: a module, or a package as a whole."""
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def imported(path: Path, package: str) -> Iterator[str]:
    """Units of a package that a file imports, be it at its top, inside a function or for annotations only."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module == package:
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith(f"{package}."):
            yield str(node.module).split(".")[1]
        elif isinstance(node, ast.Import):
            yield from (
                name.split(".")[1] for name in (alias.name for alias in node.names) if f"{package}." in name
            )


@pytest.mark.plugins("pages")
def test_the_order_names_every_module_once():
    assert sorted(READING_ORDER) == sorted({unit(path) for path in MODULES})


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_module_imports_only_from_those_before_it(path):
    own = READING_ORDER.index(unit(path))
    allowed = {"__version__", *READING_ORDER[: own + 1]}
    assert set(imported(path, "sparse_adapt")) <= allowed


def test_the_head_is_used_without_the_rest():
    """Whoever has a model of sentence-transformers takes the head alone: it imports nothing else of ours."""
    head = sorted((ROOT / "model" / "head").glob("*.py"))
    texts = [path.read_text(encoding="utf-8") for path in head]
    assert {*re.findall(r"(?:from|import) (sparse_adapt[.\w]*)", "\n".join(texts))} <= {
        "sparse_adapt.model.head",
        *(name_of(path) for path in head),
    }
    code = "import sys, sparse_adapt.model.head.library; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    ours = {name for name in done.stdout.split() if name.startswith("sparse_adapt")}
    others = {name for name in ours if not name.startswith("sparse_adapt.model.head")}
    assert others == {"sparse_adapt", "sparse_adapt.model"}


def test_data_is_cut_into_lines_at_newlines_only():
    """`str.splitlines` cuts at U+2028 and seven more, which JSON leaves inside a line; messages alone may be cut so."""
    of_messages = {"errors.py", "cli/app.py", "cli/page.py"}
    cutting = {path for path in MODULES if ".splitlines(" in path.read_text(encoding="utf-8")}
    assert {path.relative_to(ROOT).as_posix() for path in cutting} <= of_messages


@pytest.mark.plugins("pages")
def test_only_pages_and_the_api_import_diagnostics():
    users = {unit(path) for path in MODULES if "from diagnostics" in path.read_text(encoding="utf-8")}
    assert users == {"plugins", "api"}


def plugin(path: Path) -> str:
    """The plug-in that a file belongs to; none for a file of the core."""
    parts = path.relative_to(ROOT).parts
    return parts[1] if parts[0] == "plugins" and len(parts) > 2 else ""


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_plug_in_is_imported_by_itself_alone(path):
    text = path.read_text(encoding="utf-8")
    imported_plugins = set(re.findall(r"(?:from|import) sparse_adapt\.plugins\.(\w+)", text))
    assert imported_plugins <= {plugin(path)}


def test_only_names_for_editors_lead_from_the_package_to_plug_ins():
    code = ast.parse((ROOT / "__init__.py").read_text(encoding="utf-8"))
    outside = [node for node in code.body if not isinstance(node, ast.If)]
    assert "sparse_adapt.plugins" not in " ".join(map(ast.unparse, outside))


def test_no_file_imports_itself_by_others():
    """A circle of files: statements at the top, those for annotations left out."""
    graph = {name_of(path): {*at_top(path)} for path in [*MODULES, ROOT / "__init__.py"]}
    done, open_ = set(), []

    def walk(name: str) -> None:
        if name in open_:
            raise AssertionError(" -> ".join([*open_[open_.index(name) :], name]))
        if name in done or name not in graph:
            return
        open_.append(name)
        for other in sorted(graph[name]):
            walk(other)
        open_.pop()
        done.add(name)

    for name in graph:
        walk(name)


def name_of(path: Path) -> str:
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def at_top(path: Path) -> Iterator[str]:
    """The modules of ours that a file's statements at the top import."""
    known = {name_of(each) for each in MODULES}
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("sparse_adapt"):
            for each in node.names:
                whole = f"{node.module}.{each.name}"
                yield whole if whole in known else str(node.module)


def test_diagnostics_never_imports_what_trains():
    forbidden = {"synthetic", "training", "stages", "pipeline", "cli"}
    assert forbidden <= set(READING_ORDER)
    for path in (ROOT.parent / "diagnostics").glob("*.py"):
        assert not forbidden & set(imported(path, "sparse_adapt")), path.name


@pytest.mark.parametrize(
    ("code", "heavy"),
    [
        ("sparse_adapt.terms.mining", {"torch", "transformers"}),
        ("sparse_adapt.stages.table; [table.find_stage(name) for name in table.stage_names()]", {"torch"}),
        (
            "sparse_adapt.collection.readers; list(readers.read_documents('coined'))",
            {"torch", "transformers", "ir_datasets"},
        ),
    ],
)
def test_reading_a_file_or_a_table_loads_nothing_heavy(code, heavy):
    module, _, rest = code.partition(";")
    package, _, name = module.rpartition(".")
    code = f"import sys; from {package} import {name};{rest or 'pass'}; print(*{heavy} & {{*sys.modules}})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "\n"


def at_import(module: str, seen: set[str]) -> set[str]:
    """All that is imported where a module of the package is: ours and others', by their statements at the top."""
    path = ROOT.parent / f"{module.replace('.', '/')}.py"
    path = path if path.exists() else path.with_suffix("") / "__init__.py"
    if module in seen or not path.exists():
        return seen | {module.partition(".")[0]}
    seen = seen | {module}
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom):
            places = [str(node.module), *(f"{node.module}.{each.name}" for each in node.names)]
        else:
            places = [each.name for each in node.names] if isinstance(node, ast.Import) else []
        for place in places:
            seen = at_import(place, seen)
    return seen


def test_a_first_look_loads_nothing_that_measures():
    assert {"torch", "ranx"} <= at_import("sparse_adapt.retrieve.evaluate", set())
    assert not {"ranx", "matplotlib"} & at_import("sparse_adapt.pipeline.demo_report", set())


def test_the_package_itself_is_light():
    code = "import sys; before = set(sys.modules); import sparse_adapt; print(len(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(done.stdout) == 1


def test_each_package_that_is_built_says_that_it_is_typed():
    root = ROOT.parent
    wheel = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert wheel["packages"] == ["sparse_adapt", "diagnostics", "corpora"]
    assert all((root / package / "py.typed").is_file() for package in wheel["packages"])
