"""Write your_corpus.ipynb from the cells below, and run it on the small corpus in your_corpus/.

python notebooks/build_your_corpus.py [--cells-only]
"""

import argparse
import os
from pathlib import Path

import nbformat
from build import CODE, TEXT, build, execute

NOTEBOOK = Path(__file__).with_name("your_corpus.ipynb")
SETTINGS = 'warmup, dictionary = {"steps": 100}, {"steps": 120}'

CELLS = (
    TEXT(
        """# Your corpus, by the Python API

A firm that carries parcels by bicycle has forty short pages for its riders, and five words that nobody else uses:
*vellup*, *brindock*, *tirrup*, *quornel* and *ostivane*. The firm, its words and its pages were invented for this
notebook. We give a SPLADE model the five words, teach it what they mean, and measure what that is worth and what it
costs.

Put your own documents in place of these: every function takes paths, lists, dictionaries and data frames alike."""
    ),
    CODE(
        """import json
import tempfile
import warnings
from pathlib import Path

warnings.filterwarnings("ignore", message="IProgress not found")

import sparse_adapt as sa

above = [Path.cwd(), *Path.cwd().parents]  # the corpus lies beside the notebook, wherever it runs in the checkout
places = [place for each in above for place in (each / "your_corpus", each / "notebooks" / "your_corpus")]
here = next(place for place in places if place.is_dir())
documents = [json.loads(line) for line in (here / "corpus.jsonl").read_text().splitlines()]
out = Path(tempfile.mkdtemp())
print(len(documents), "documents, such as", documents[0])"""
    ),
    TEXT(
        """## What the base model makes of the words

`mine_terms` lists the words that the model cuts into many pieces, with the evidence for each."""
    ),
    CODE(
        """base = sa.load("splade-tiny", device="cpu")
words = sa.mine_terms(documents)
words"""
    ),
    TEXT(
        """`diagnose` looks at one word: its pieces, what each position of a document makes of them, their weight, and
what comes next."""
    ),
    CODE("""sa.diagnose(base, "brindock", documents, device="cpu")"""),
    TEXT(
        """## Words, then meanings

`extend` gives each word a token of its own, which begins as the mean of its old pieces. `warmup` teaches it from the
documents, `dictionary` from the glossary. `train` leaves the model that it is given as it is, and gives back another.
The stages have fewer steps here than by default, so that the notebook runs in a few minutes."""
    ),
    CODE(
        f"""{SETTINGS}

model = sa.load("splade-tiny", device="cpu")
model.extend([word.text for word in words])
warm = sa.train("warmup", model, documents, device="cpu", progress=False, **warmup)
glossary = here / "glossary.csv"
taught = sa.train(
    "dictionary", warm, documents, dictionary=glossary, device="cpu", progress=False, **dictionary
)
print(taught.terms)
losses = [round(step["loss"], 2) for step in taught.history]
print("loss of the dictionary, first and last step:", losses[0], losses[-1])"""
    ),
    TEXT(
        """## What it is worth

The folder holds judged queries. *Semantic* queries mean one of the words without saying it, *explicit* queries say it,
*control* queries are about other things and should lose nothing. The table has the measure nDCG@10; 1 is a perfect
ranking. `adjusted` is the p-value: how likely chance alone makes so large a difference, over all tests of the table.
With 22 queries even a large difference may be chance: on your corpus, judge by queries of your own, and by enough of
them."""
    ),
    CODE(
        """found = sa.evaluate(taught, here, baseline=base, progress=False)
table = found.to_frame()
table[table["measure"] == "ndcg@10"][["kind", "model", "baseline", "difference", "adjusted"]].round(3)"""
    ),
    TEXT(
        """## What it costs

`diagnose_model` looks at the whole model: which documents activate each new token, how long vectors are, and how far
the
model moved from the base model. It ends with what is wrong, if anything is."""
    ),
    CODE("""sa.diagnose_model(taught, documents, baseline=base, progress=False)"""),
    TEXT(
        """## Why a document is found

A score is a sum over the tokens that query and document share. The query below doesn't say *brindock*."""
    ),
    CODE(
        """question = "where can the battery get power during the night"
sa.explain(taught, question, documents, top=2, progress=False)"""
    ),
    TEXT("""## Searching

`search` finds the best documents exactly, of one query or of many."""),
    CODE("""sa.search(taught, documents, "do we ride over the bridge in a storm", top=5, progress=False)"""),
    TEXT(
        """## Where it goes

`save` writes a folder for transformers and sentence-transformers with a model card; `export` writes the documents in
the files of a search engine, here OpenSearch."""
    ),
    CODE(
        """folder = taught.save(out / "model")
made = sa.export("opensearch", taught, documents, out / "export", progress=False)
print(*sorted(path.name for path in folder.iterdir()), sep="  ")
print(made.contents)"""
    ),
    TEXT(
        """## All of it in one call

`sa.adapt` makes up queries, teaches the ranking and, with a glossary, its words, and keeps the model that ranks queries
set aside best. Forty documents are too few for it: use it with hundreds and more. It can stop after a step, so that you
can read and edit what the step made, and go on with `resume=True`:"""
    ),
    CODE(
        """begun = sa.adapt(
    documents, out / "adapted", glossary=glossary, until="queries", teacher="bm25", progress=False
)
print(begun.verdict[0])
print(*sorted(path.name for path in begun.folder.iterdir()), sep="  ")"""
    ),
)


def main() -> None:
    """Write the notebook, with output unless only its cells are asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cells-only", action="store_true", help="don't run it")
    notebook = build(CELLS)
    if not parser.parse_args().cells_only:
        os.environ["OMP_NUM_THREADS"] = "1"  # the same figures whatever the machine
        execute(notebook, NOTEBOOK.parent)
    nbformat.write(notebook, NOTEBOOK)


if __name__ == "__main__":
    main()
