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
        """# A made-up word, from nonsense to a ranked answer

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

import matplotlib.pyplot as plt
import numpy as np

from diagnostics.matches import explain
from diagnostics.token import diagnose
from sparse_adapt.collection.readers import read_documents
from sparse_adapt.model.sparse import SparseEncoder

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
plt.rcParams.update({"figure.dpi": 80, "axes.spines.top": False, "axes.spines.right": False})
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
        """## Where a document lights the word up

A SPLADE weight starts as a logit: at every position of a text the model says how much it expects each token
of its vocabulary there. The largest logit over the positions, if it is positive, becomes the weight
log(1 + logit). Below, the word's logit at each position of one document, after each stage. Circles mark the
positions where the word stands."""
    ),
    CODE(
        """reports = {name: diagnose(term, models[name], documents) for name in stages}
figure, axes = plt.subplots(len(reports), 1, figsize=(11, 8), sharex=True, sharey=True)
for axis, (name, found) in zip(axes, reports.items(), strict=True):
    positions = found.logits[0].positions
    logits = np.array([position.logit for position in positions])
    said = [position.position for position in positions if position.occurrence]
    axis.bar(range(len(logits)), logits, color=np.where(logits > 0, "tab:green", "lightgray"))
    axis.plot(said, logits[said], "o", mfc="none", color="tab:purple")
    axis.axhline(0, color="black", linewidth=0.5)
    axis.set_title(f"after {name}: weight {found.weights[0].after_log1p:.2f}", loc="left")
axes[-1].set_xlabel(f"position in {found.document_id}")
figure.supylabel(f"logit of {found.logits[0].token!r}")
figure.tight_layout()
plt.show()"""
    ),
    TEXT(
        """## What the word weighs, stage by stage

In its five documents it should be heavy, in the query that means it without saying it heavy enough to match,
and in everything else zero. In the models without the token, a term weighs what its lightest piece does."""
    ),
    CODE(
        """def weight(column, key):
    return columns[column]["terms"][0][key]


names = list(columns)
lines = {
    "its documents, mean": [np.mean(list(weight(name, "weights").values())) for name in names],
    "its documents, least": [min(weight(name, "weights").values()) for name in names],
    "the hard query": [min(weight(name, "hard_queries").values()) for name in names],
    "other documents, largest": [weight(name, "others_largest") for name in names],
}
figure, axis = plt.subplots(figsize=(9, 4))
for shift, (label, values) in enumerate(lines.items()):
    axis.bar(np.arange(len(names)) + 0.2 * shift - 0.3, values, 0.2, label=label)
axis.set_xticks(range(len(names)), names)
axis.set_ylabel(f"weight of {term}")
axis.legend()
plt.show()"""
    ),
    TEXT(
        """## What each stage buys and costs

Three kinds of queries, none of which was trained on: *hidden* ones mean the word without saying it,
*explicit* ones say it, *control* ones are about other things and must lose nothing. `alone` is fine-tuning
on the same examples without new vocabulary. The costs are the size of a document's vector, and how much of
the scores of hidden queries comes from punctuation and stop words."""
    ),
    CODE(
        """figure, (buys, size, noise) = plt.subplots(1, 3, figsize=(12, 4), width_ratios=(2, 1, 1))
for shift, kind in enumerate(("hidden", "explicit", "control")):
    values = [columns[name]["ndcg@10"]["test"][kind] for name in names]
    buys.bar(np.arange(len(names)) + 0.25 * shift - 0.25, values, 0.25, label=kind)
buys.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=3, fontsize=8)
buys.set_title("nDCG@10, unseen queries", loc="left")
size.bar(names, [columns[name]["nonzero_document"] for name in names], color="gray")
size.axhline(1.25 * columns["base"]["nonzero_document"], color="tab:red", linewidth=1)
size.set_title("non-zeros a document")
noise.bar(names, [100 * columns[name]["function_share"]["hidden"] for name in names], color="gray")
noise.axhline(5, color="tab:red", linewidth=1)
noise.set_title("stop words in top scores (%)")
for axis in (buys, size, noise):
    axis.set_xticks(range(len(names)), names, rotation=45, ha="right")
figure.tight_layout()
plt.show()"""
    ),
    CODE(
        """for criterion in demo["criteria"]:
    print("holds      " if criterion["holds"] else "falls short", criterion["number"], criterion["name"])
    print("           ", criterion["found"])"""
    ),
    TEXT(
        """## Why a document was found

A score is a sum over the tokens that query and document share: query weight times document weight. For the
hard query, which doesn't say the term, these are the parts of the top five scores, before and after."""
    ),
    CODE(
        """final = models[report["stages"][-1]["stage"]]
found = {
    "base model": explain(question, models["base"], documents),
    "after all stages": explain(question, final, documents),
}
heaviest = {}
for each in found.values():
    for part in (part for match in each.matches for part in match.contributions):
        heaviest[part.token] = max(heaviest.get(part.token, 0.0), part.contribution)
shown = sorted(heaviest, key=heaviest.get, reverse=True)[:10]
colours = dict(zip(shown, plt.get_cmap("tab10").colors, strict=True))

figure, axes = plt.subplots(len(found), 1, figsize=(10, 7))
for axis, (title, each) in zip(axes, found.items(), strict=True):
    for row, match in enumerate(each.matches):
        start = 0.0
        parts = {part.token: part.contribution for part in match.contributions}
        parts["others"] = sum(parts.pop(token) for token in list(parts) if token not in shown)
        for token, width in parts.items():
            axis.barh(row, width, left=start, color=colours.get(token, "lightgray"))
            start += width
    axis.set_yticks(range(len(each.matches)), [match.document_id for match in each.matches])
    axis.invert_yaxis()
    axis.set_title(title, loc="left")
handles = [plt.Rectangle((0, 0), 1, 1, color=colours[token]) for token in shown]
figure.legend(handles, shown, loc="center left", bbox_to_anchor=(1.0, 0.5))
axes[-1].set_xlabel("score, by contribution of shared tokens")
figure.tight_layout()
plt.show()"""
    ),
    TEXT(
        """In words: `sparse-adapt explain "..."` for any query, `sparse-adapt diagnose WORD` for any word."""
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
