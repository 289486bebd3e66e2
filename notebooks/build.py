"""Write gatrocraptic.ipynb from the cells below, and run it on the demo in runs/gatrocraptic.

Where no demo is there, the first cell carries one out.

python notebooks/build.py [--cells-only]
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

NOTEBOOK = Path(__file__).with_name("gatrocraptic.ipynb")
SECONDS = 1800  # for a cell, of which the first may carry the demo out

TEXT, CODE = new_markdown_cell, new_code_cell

CELLS = (
    TEXT(
        """# A synthetic word, from nonsense to a ranked answer

*Gatrocraptic* is an invented word for a way of managing an organisation's spending. No pre-trained model has
seen it. Here we follow it through the stages of `sparse-adapt demo`: what the model sees, what the word
weighs, what each stage buys and what it costs, and in the end why a query that doesn't say the word finds
the documents about it.

Everything below comes from a finished demo, by the functions of `import sparse_adapt` alone. Where none is there yet,
the first cell carries one out, which takes some minutes."""
    ),
    CODE(
        """import sparse_adapt as sa

demo = sa.demo(out="../runs/gatrocraptic", resume=True)  # a finished run is only read
found = demo.report["demo"]
term, question = found["terms"][0], next(iter(found["hard_queries"].values()))
models = {"base": sa.load(demo.report["model"])}
models |= {stage["stage"]: sa.load(demo.folder / stage["folder"]) for stage in demo.report["stages"]}

print(f"{term!r}; the hard query is {question!r}")"""
    ),
    TEXT(
        """## What the model sees

The base model breaks the word into pieces that mean nothing together. After `extend` it is one token, with an
input row and an output row of its own, both the mean of the pieces' rows. A document that says it weighs the
tokens which the model expects there: the pieces at first, at the end the word itself."""
    ),
    CODE(
        """for name, model in models.items():
    pieces = sa.diagnose(model, term, demo.corpus).vocabulary["tokens"]
    heaviest = model.decode(model.encode_document(f"{term} holds the spending of a department."), top_k=4)[0]
    weights = "  ".join(f"{token} {weight:.2f}" for token, weight in heaviest)
    print(f"{name:>10}: {' '.join(pieces):<25} {weights}")"""
    ),
    TEXT(
        """## Where a document activates the word

A SPLADE weight starts as a logit: at every position of a text the model says how much it expects each token
of its vocabulary there. The largest logit over the positions, if it is positive, becomes the weight
log(1 + logit). `diagnose` follows a word through this. Of the model after `extend`, which was taught nothing yet:"""
    ),
    CODE("""sa.diagnose(models["extend"], term, demo.corpus)"""),
    TEXT("""And after all stages:"""),
    CODE("""sa.diagnose(models["distill"], term, demo.corpus)"""),
    TEXT(
        """## What each stage buys and costs

Three kinds of queries, none of which was trained on: *semantic* ones mean the word without saying it,
*explicit* ones say it, *control* ones are about other things and must lose nothing. The word should be heavy
where it is said and where it is meant, and weigh nothing elsewhere."""
    ),
    CODE("""demo"""),
    TEXT(
        """## Why a document was found

A score is a sum over the tokens that query and document share: query weight times document weight. Below is the
hard query, which doesn't say the term, under the base model; each document opens to show the parts of its score."""
    ),
    CODE("""sa.explain(models["base"], question, demo.corpus)"""),
    TEXT("""The same after all stages: the new term is the heaviest part of every score."""),
    CODE("""sa.explain(models["distill"], question, demo.corpus)"""),
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
        execute(notebook, NOTEBOOK.parent)
    home = f"{NOTEBOOK.parents[1]}/"  # which the cells reach from their own folder
    NOTEBOOK.write_text(nbformat.writes(notebook).replace(home, "../") + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
