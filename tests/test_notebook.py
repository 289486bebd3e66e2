"""Each notebook is what its script makes, and runs: one on the demo's own output, one on a corpus of its own."""

import importlib
import importlib.util
from pathlib import Path

import nbformat
import pytest

FOLDER = Path(__file__).parents[1] / "notebooks"
NOTEBOOK = FOLDER / "gatrocraptic.ipynb"
LARGEST = 300_000  # bytes of a notebook with its outputs


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("build", FOLDER / "build.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def sources(notebook):
    return [(cell.cell_type, cell.source) for cell in notebook.cells]


@pytest.mark.plugins("engines")
def test_the_notebook_is_what_its_script_makes(script):
    saved = nbformat.read(NOTEBOOK, as_version=4)
    nbformat.validate(saved)
    assert sources(saved) == sources(script.build())
    lines = [line for kind, text in sources(saved) if kind == "code" for line in text.splitlines()]
    assert [line for line in lines if "import" in line] == ["import sparse_adapt as sa"]
    assert NOTEBOOK.stat().st_size < LARGEST
    assert "../corpora/gatrocraptic/dictionary.jsonl" in str(saved), "a file of the checkout"
    assert str(Path.home()) not in str(saved) and str(FOLDER.parent) not in str(saved)


@pytest.mark.nightly
def test_the_notebook_runs_on_what_the_demo_leaves(script, demo_run):
    folder = demo_run.parents[1] / "notebooks"  # beside runs, as in the repository
    folder.mkdir(exist_ok=True)
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = []
    script.execute(notebook, folder)
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    shown = [output["data"]["text/html"] for output in outputs if output.output_type == "execute_result"]
    assert len(shown) == 5  # a word after its token and after all stages, the demo, a query before and after
    assert all("<svg" in word for word in shown[:2]) and "ndcg" in shown[2].lower()
    assert all("gatrocraptic-overview" in query for query in shown[3:])
    printed = "".join(output.text for output in outputs if output.output_type == "stream")
    assert "gatrocraptic" in printed


# -- a corpus of one's own ------------------------------------------------------------------------


@pytest.fixture
def own(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    return importlib.import_module("build_your_corpus")


def test_the_notebook_of_a_corpus_is_what_its_script_makes(script, own):
    saved = nbformat.read(own.NOTEBOOK, as_version=4)
    nbformat.validate(saved)
    assert sources(saved) == sources(script.build(own.CELLS))


@pytest.mark.nightly
def test_the_notebook_of_a_corpus_runs(own, monkeypatch):
    """Its cells, with two steps a stage, and without the labeller."""
    monkeypatch.chdir(FOLDER)
    short = 'warmup, dictionary = {"steps": 2}, {"steps": 2, "labeller": "none"}'
    names = {}
    for cell in own.CELLS:
        if cell.cell_type == "code":
            exec(cell.source.replace(own.SETTINGS, short), names)
    assert names["warmup"] == {"steps": 2} and len(names["taught"].terms) == 5
    assert names["begun"].stopped == "queries"


def test_its_output_shows_what_was_gained_and_no_path_of_a_machine(own):
    saved = nbformat.read(own.NOTEBOOK, as_version=4)
    outputs = [output for cell in saved.cells for output in cell.get("outputs", [])]
    assert not [output for output in outputs if output.output_type == "error"]
    assert "semantic" in str(outputs) and "brindock" in str(outputs)
    assert str(Path.home()) not in str(outputs) and str(FOLDER) not in str(outputs)
