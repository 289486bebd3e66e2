"""What a SPLADE model grafted on a dense encoder's body reaches, beside the two models that it was made of.

    python -m benchmarks.grafting --data DIR [--encoder MODEL] [--questions | --copy] [--effort 1]
        [--work runs/grafting]

DIR holds the collections in BEIR layout, among them the control, and `glossaries/*.jsonl`. The graft learns from the
documents of the collections and from the glossaries' definitions, never from a query, a judgement or the control; with
--questions it learns to rank by 6,000 general questions of people, those of DIR/questions, and with --copy not at all.
A graft that was stopped goes on. Prints a Markdown table, and saves it, all figures and a log of the losses under
benchmarks/results.
"""

import argparse
import json
import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

import sparse_adapt as sa
from benchmarks.adapting import BASE, COLLECTIONS, DENSE
from benchmarks.tables import CONTROL, MEASURE, RESULTS, line
from sparse_adapt.collection.glossary import definition_of
from sparse_adapt.collection.lines import read_objects
from sparse_adapt.collection.readers import Document, write_documents
from sparse_adapt.model.dense import SMALL
from sparse_adapt.pipeline.preparing import peak_memory
from sparse_adapt.plugins.research.suite.measure import run_suite
from sparse_adapt.plugins.research.suite.settings import Suite, SuiteCollection, SuiteFile, SuiteRanker

COLUMNS_SHOWN = (
    "text",
    "grafted",
    "1-logits",
    "2-preserve",
    "queries",
    "candidates",
    "3-rank",
)  # steps and stages
QUESTIONS, ASKED = "questions", 6_000
GATE = 0.494  # mean of the four collections that is aimed at
ROWS = {
    BASE: SuiteRanker(model=BASE),
    f"{BASE} x idf": SuiteRanker(model=BASE, scale="sqrt-idf"),
    DENSE: SuiteRanker(dense=DENSE),
}


def definitions(folder: Path) -> Iterator[Document]:
    """The entries of all glossaries in a folder, each a document. An entry that is there twice is read twice."""
    for path in sorted(folder.glob("*.jsonl")):
        entries = map(definition_of, read_objects(path))
        for number, entry in enumerate(filter(None, entries)):
            yield Document(f"{path.stem}-{number}", entry.definition, entry.term)


def make(
    data: Path, work: Path, collections: list[str], settings: dict[str, Any], *, questions: bool
) -> dict[str, Any]:
    """The graft, in `work`/grafted, and what it took: seconds and bytes of this process."""
    texts = work / "definitions" / "corpus.jsonl"
    if not texts.is_file():
        write_documents(texts, definitions(data / "glossaries"))
    corpora = [*(str(data / name) for name in collections), str(texts.parent)]
    if questions:
        corpora.append(str(data / QUESTIONS))
        settings = {**settings, "questions": data / QUESTIONS, "ranked": ASKED, "queries": ASKED}
    sa.graft(corpora, work / "grafted", resume=True, **settings)
    took = [json.loads(path.read_text())["seconds"] for _, path in stages_of(work / "grafted")]
    return {"seconds": round(sum(took)), "peak_memory": peak_memory()}


def stages_of(run: Path) -> list[tuple[str, Path]]:
    """What a run tells of each of its steps and stages, by their names, in their order."""
    places = {
        name: run / (f"{name}/stage.json" if name[0].isdigit() else f"steps/{name}.json")
        for name in COLUMNS_SHOWN
    }
    return [(name, place) for name, place in places.items() if place.is_file()]


def log(run: Path) -> str:
    """A line for each step, and of learning one for every hundred steps, with the losses there."""
    lines = []
    for name, path in stages_of(run):
        record, history = json.loads(path.read_text()), path.with_name("history.jsonl")
        steps = history.read_text().splitlines() if history.is_file() else ()
        for row in map(json.loads, steps):
            if row["step"] % 100 == 0 or row["step"] == record["steps"]:
                losses = {key: value for key, value in row.items() if key not in ("step", "learning_rate")}
                values = ", ".join(f"{key} {value:.3g}" for key, value in losses.items())
                lines.append(f"{name}: step {row['step']:,}: {values}")
        message = record.get("message") or f"{record['steps']:,} steps"
        lines.append(f"{name}: {message} ({record['seconds']:,.0f} s)")
    return "\n".join(lines) + "\n"


def measure(data: Path, work: Path, collections: list[str]) -> dict[str, dict[str, Any]]:
    """nDCG@10 and non-zeros of each row on each collection."""
    model = str(work / "grafted" / "model")
    rows = {**ROWS, "grafted": SuiteRanker(model=model)}
    rows["grafted x idf"] = SuiteRanker(model=model, scale="sqrt-idf")
    places = {name: SuiteCollection(path=str(data / name)) for name in (*collections, CONTROL)}
    suite = Suite(top=SuiteFile(baseline=BASE), rows=rows, collections=places)
    figures: dict[str, dict[str, Any]] = {name: {} for name in rows}
    for each in run_suite(suite, None, cache=work / "kept").reached:
        costs = {} if each.costs is None else each.costs._asdict()
        figures[each.row][each.collection] = {**each.measured.means, **costs}
    return figures


def table(figures: dict[str, dict[str, Any]], collections: list[str]) -> str:
    """A row a model, a column a collection."""
    lines = [
        line(["", *collections, "mean", CONTROL, "non-zeros a document"]),
        "|---|" + "---:|" * (len(collections) + 3),
    ]
    for name, of in figures.items():
        values = [of[each][MEASURE] for each in collections]
        sizes = [of[each]["nonzero_document"] for each in collections if "nonzero_document" in of[each]]
        cells = [f"{value:.3f}" for value in (*values, statistics.fmean(values), of[CONTROL][MEASURE])]
        lines.append(line([name, *cells, f"{statistics.fmean(sizes):.0f}" if sizes else ""]))
    return "\n".join(lines) + "\n"


def main() -> None:
    """Make the graft unless it is there, measure it, print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--collections", nargs="*", default=list(COLLECTIONS))
    parser.add_argument("--encoder", default=SMALL, help="whose body it gets")
    ranking = parser.add_mutually_exclusive_group()
    ranking.add_argument("--questions", action="store_true", help="rank by questions of people")
    ranking.add_argument("--copy", action="store_true", help="don't learn to rank")
    parser.add_argument("--effort", type=float, default=1.0, help="times the usual number of steps")
    parser.add_argument("--work", type=Path, default=Path("runs/grafting"))
    parser.add_argument("--name", default="grafting", help="of the result files")
    arguments = parser.parse_args()
    places = arguments.data, arguments.work, arguments.collections
    settings = {"encoder": arguments.encoder, "effort": arguments.effort}
    if arguments.copy:
        settings["ranked"] = 0
    took = make(*places, settings, questions=arguments.questions)
    figures = measure(*places)
    text = table(figures, arguments.collections)
    RESULTS.mkdir(exist_ok=True)
    results = {
        "encoder": Path(arguments.encoder).name,
        "effort": arguments.effort,
        "threads": torch.get_num_threads(),
        **took,
        "gate": GATE,
        "rows": figures,
    }
    (RESULTS / f"{arguments.name}.json").write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    (RESULTS / f"{arguments.name}.md").write_text(text, encoding="utf-8")
    (RESULTS / f"{arguments.name}.log").write_text(log(arguments.work / "grafted"), encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
