"""A larger SPLADE model for other benchmarks: a dense encoder's body that copies a SPLADE model of the same vocabulary.

    python -m benchmarks.grafting CORPUS ... -o DIR [--encoder MODEL] [--model splade-tiny] [--effort 1]

It learns from the texts of the corpora and from general passages, without labels: first each token's logits, then the
vectors of whole texts (`preserve`). Writes a model folder.
"""

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path

import torch

from benchmarks.grafts import WORDS, Logits, TokenLogits, graft_body
from sparse_adapt.collection.readers import Document, read_documents, write_documents
from sparse_adapt.collection.streams import evenly, sample
from sparse_adapt.files.place import Place
from sparse_adapt.model.dense import SMALL, fast_precision
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.pipeline.plan import settings_for
from sparse_adapt.stages.runner import carry_out_stage
from sparse_adapt.synthetic.background import background_pairs
from sparse_adapt.training.loop import train
from sparse_adapt.training.settings import at_width

DOCUMENTS = 60_000  # that are learnt from, of all
FITTED_ON = 2_000  # of these, for the head's first weights
STEPS = {"logits": 1_000, "preserve": 600}
RATE, WIDTH = 3e-4, 384  # of `preserve`, on the body that it was measured on


def documents_of(corpora: Sequence[str]) -> list[Document]:
    """Documents of all corpora and general passages, their ids told apart; a sample of many."""
    documents = [
        Document(f"{number}-{document.document_id}", document.text, document.title)
        for number, corpus in enumerate(corpora, start=1)
        for document in read_documents(corpus)
    ]
    return sample([*documents, *(passage for passage, _ in background_pairs())], DOCUMENTS, 0)


def copy(
    documents: Sequence[Document], out: Path, *, encoder: str, model: str, effort: float, device: str
) -> None:
    """Teach the body of an encoder to weigh tokens as a SPLADE model does, and save it."""
    sparse, texts = SparseEncoder.load(model), [document.full_text for document in documents]
    beginnings = [" ".join(text.split()[:WORDS]) for text in evenly(texts, FITTED_ON)]
    grafted = graft_body(encoder, sparse, sparse.tokenize(beginnings)).to(device)
    steps = {stage: max(1, round(effort * number)) for stage, number in STEPS.items()}
    given = {"precision": fast_precision(torch.device(device)), "device": device}
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        settings = Logits.model_validate({**given, "steps": steps["logits"]})
        train(grafted, TokenLogits(grafted, sparse.to(device), texts, settings), work / "logits")
        grafted.save(work / "model")
        write_documents(work / "text" / "corpus.jsonl", documents)
        own = {"batch_size": 32, "background": 0.1, "weights": {"old": 1.0, "new": 0.0, "extra": 1.0}}
        rate = {"learning_rate": at_width(RATE, grafted.width, WIDTH), "steps": steps["preserve"]}
        named: dict[str, str | Path] = {"corpus": work / "text", "before": model}
        settled = settings_for("preserve", overrides={**given, **own, **rate})
        carry_out_stage("preserve", str(work / "model"), named, Place(out), settled)


def main() -> None:
    """Make the model."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("corpora", nargs="+", metavar="CORPUS")
    parser.add_argument("-o", "--out", type=Path, required=True)
    parser.add_argument("--encoder", default=SMALL, help="whose body it gets")
    parser.add_argument("--model", default="splade-tiny", help="SPLADE model that is copied")
    parser.add_argument("--effort", type=float, default=1.0, help="times the usual number of steps")
    parser.add_argument("--device", default="cpu")
    given = vars(parser.parse_args())
    copy(documents_of(given.pop("corpora")), **given)


if __name__ == "__main__":
    main()
