"""Write gatrocraptic.ipynb from the cells below, and run it on what the demo left in runs/gatrocraptic.

python notebooks/build.py [--cells-only]
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

NOTEBOOK = Path(__file__).with_name("gatrocraptic.ipynb")
SECONDS = 600

TEXT, CODE = new_markdown_cell, new_code_cell

CELLS = (
    TEXT(
        """# A synthetic word, from nonsense to a ranked answer

*Gatrocraptic* is an invented word for a way of managing an organisation's spending. No pre-trained model has
seen it. Here we follow it through the stages of `sparse-adapt demo`: what the model sees, what the word
weighs, what each stage buys and what it costs, and in the end why a query that doesn't say the word finds
the documents about it.

Everything below is read from the demo's own output. Run `make demo` first."""
    ),
    CODE(
        """import json
import warnings
from pathlib import Path

warnings.filterwarnings("ignore", message="IProgress not found")

from IPython.display import SVG, display

from diagnostics.matches import explain
from diagnostics.token import diagnose
from diagnostics.token_report import positions_of
from sparse_adapt.collection.readers import read_documents
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.plugins.pages.html import svg_file
from sparse_adapt.plugins.pages.stages import before_after

RUN = Path("../runs/gatrocraptic")
report = json.loads((RUN / "report.json").read_text())
demo = report["demo"]
columns = {column["name"]: column for column in demo["columns"]}
stages = {stage["stage"]: RUN / stage["folder"] for stage in report["stages"]}
models = {"base": SparseEncoder.load(report["model"])}
models |= {stage: SparseEncoder.load(folder) for stage, folder in stages.items()}

term = demo["terms"][0]
question = next(iter(demo["hard_queries"].values()))
documents = list(read_documents(report["corpus"]))


def show(pictures):
    for picture in pictures:
        display(SVG(svg_file(picture)))


print(f"{term!r}: {len(documents)} documents; the hard query is {question!r}")"""
    ),
    TEXT(
        """## What the model sees

The base model breaks the word into pieces that mean nothing together. After `extend` it is one token, with an
input row and an output row of its own, both the mean of the pieces' rows."""
    ),
    CODE(
        """for name, model in models.items():
    ids = model.tokenizer(term, add_special_tokens=False)["input_ids"]
    print(f"{name:>10}: {' '.join(model.tokenizer.convert_ids_to_tokens(ids))}")"""
    ),
    TEXT(
        """## Where a document activates the word up

A SPLADE weight starts as a logit: at every position of a text the model says how much it expects each token
of its vocabulary there. The largest logit over the positions, if it is positive, becomes the weight
log(1 + logit). Below, the word's logit at each position of one document, after each stage. The positions where
the word stands have a colour of their own."""
    ),
    CODE(
        """reports = {name: diagnose(term, models[name], documents) for name in stages}
show(
    positions_of(found.logits[0], f"after {name}: weight {found.weights[0]['after_log1p']:.2f}")
    for name, found in reports.items()
)"""
    ),
    TEXT(
        """## What each stage buys and costs

Three kinds of queries, none of which was trained on: *semantic* ones mean the word without saying it,
*explicit* ones say it, *control* ones are about other things and must lose nothing. The word should be heavy
where it is said and where it is meant, and weigh nothing elsewhere. The costs are queries that activate the word by
mistake, the size of a document's vector, and how much of the scores comes from punctuation and stop words."""
    ),
    CODE("""show(before_after(demo["columns"]))"""),
    CODE(
        """for line in report["ruling"]["lines"]:
    print(f"{line['about']:8}", line["text"])"""
    ),
    TEXT(
        """## Why a document was found

A score is a sum over the tokens that query and document share: query weight times document weight. Below is the
hard query, which doesn't say the term, under the base model; each document opens to show the parts of its score."""
    ),
    CODE("""explain(question, models["base"], documents)"""),
    TEXT("""The same after all stages: the new term is the heaviest part of every score."""),
    CODE("""explain(question, models[report["stages"][-1]["stage"]], documents)"""),
    TEXT(
        """`sparse-adapt explain "..."` shows the same for any query, `sparse-adapt diagnose WORD` for any word, and
`sparse-adapt explore` for both on a local web page."""
    ),
)


def build(of: Sequence[nbformat.NotebookNode] = CELLS) -> nbformat.NotebookNode:
    """A notebook without output. Cells are numbered, so that a rebuilt file differs only where it must."""
    cells = [{**cell, "id": f"cell-{number}"} for number, cell in enumerate(of, start=1)]
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return nbformat.from_dict(new_notebook(cells=cells, metadata={"kernelspec": kernel}))


def execute(notebook: nbformat.NotebookNode, folder: Path) -> None:
    """Run every cell in a folder; raises CellExecutionError at the first that fails."""
    NotebookClient(
        notebook, timeout=SECONDS, kernel_name="python3", resources={"metadata": {"path": str(folder)}}
    ).execute()
    for cell in notebook.cells:
        cell.get("metadata", {}).pop("execution", None)  # when each cell ran


def main() -> None:
    """Write the notebook, with output unless only its cells are asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cells-only", action="store_true", help="don't run it")
    arguments = parser.parse_args()
    notebook = build()
    if not arguments.cells_only:
        if not (NOTEBOOK.parents[1] / "runs" / "gatrocraptic" / "report.json").is_file():
            raise SystemExit("error: no run to tell of; make demo first")
        execute(notebook, NOTEBOOK.parent)
    nbformat.write(notebook, NOTEBOOK)


if __name__ == "__main__":
    main()
