"""The notebook is what its script makes, and runs on the demo's own output."""

import importlib.util
from pathlib import Path

import nbformat
import pytest

FOLDER = Path(__file__).parents[1] / "notebooks"
NOTEBOOK = FOLDER / "gatrocraptic.ipynb"


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("build", FOLDER / "build.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def sources(notebook):
    return [(cell.cell_type, cell.source) for cell in notebook.cells]


def test_the_notebook_is_what_its_script_makes(script):
    saved = nbformat.read(NOTEBOOK, as_version=4)
    nbformat.validate(saved)
    assert sources(saved) == sources(script.build())


@pytest.mark.slow
def test_the_notebook_runs_on_what_the_demo_leaves(script, demo_run):
    folder = demo_run.parents[1] / "notebooks"  # beside runs, as in the repository
    folder.mkdir(exist_ok=True)
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = []
    script.execute(notebook, folder)
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    plots = [output for output in outputs if "image/png" in output.get("data", {})]
    assert len(plots) == 4
    printed = "".join(output.text for output in outputs if output.output_type == "stream")
    assert "gatrocraptic" in printed
    assert "2 loses nothing" in printed
