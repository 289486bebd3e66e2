"""What `adapt` promises, what it gains and what it loses: `python -m benchmarks.promises --data DIR RUN ...`.

RUN is the folder of `sparse-adapt adapt DIR/COLLECTION/corpus.jsonl --seed SEED --out COLLECTION-SEED`; DIR holds the
collections, MS MARCO's pool and `questions`. Each model that the run could have kept is measured beside the base model
on the queries that the run set aside, by kind, on the collection's test queries, on MS MARCO's and on the package's
questions; the kept model also answers questions of DIR/questions that neither chose nor taught. `--keywords` adds
keywords, drawn from the documents set aside as people's questions draw words from the passages that answer them, which
a logistic regression learns from DIR/questions. Prints how well it predicts words (area under the curve, each kind of
question left out in turn), gain against loss, what the kept models gain in each collection, and the rank correlation of
the promised gain with the real one. Dimensions: W words of a passage.
"""

import argparse
import json
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.stats import spearmanr
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from benchmarks.tables import CONTROL, MEASURE, Results, line
from sparse_adapt.collection.examples import read_candidates
from sparse_adapt.collection.readers import Document, read_documents, read_judgements, read_queries
from sparse_adapt.model.reading import Reading
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.pipeline.choice import CHOICE_FILE, makers_of
from sparse_adapt.pipeline.plan import BASE_MODEL, Plan
from sparse_adapt.pipeline.preparing import prepare_candidates
from sparse_adapt.retrieve.evaluate import Collection, ModelResult, evaluate_model, read_collection
from sparse_adapt.selection.models import ComparedModel, Maker, answers, held_out_collection, try_models
from sparse_adapt.selection.questions import general_collection
from sparse_adapt.synthetic.queries import (
    HELD,
    WORD,
    Collected,
    Rarity,
    SyntheticQuery,
    read_synthetic_queries,
    write_collection,
)
from sparse_adapt.teachers.settings import CandidateSettings
from sparse_adapt.teachers.teacher import make_teacher

KINDS = ("forum", "wiki", "search", "selqa")  # of questions whose licence is stated
PAIRS = 1_340  # questions of a kind, with their passages
FEWEST = 5  # words of a passage that a question could say
LENGTHS = {2: 0.34, 3: 0.34, 4: 0.21, 5: 0.11}  # words that a question shares with its passage, and how often
INTERPOLATIONS = (0.5,)
KEYWORDS, REAL, MSMARCO, PACKAGE, ALL = "keywords", "real", "msmarco", "package", "all"
KEPT, BOUND = "kept", "bound"  # whether the run keeps the model; what it then gains at least on the package's
OTHERS = "others"  # questions of DIR/questions that neither chose nor taught
DRAWN = {"new": 700, "selqa": 300}  # of them by kind: SQuADShifts and SelQA
IDF = "base with idf"

Fitted = tuple[
    NDArray[np.float64], NDArray[np.bool_]
]  # features (W, 4) and which words the question says (W)


class Telling(NamedTuple):
    """What the words of a passage are drawn by: odds by the count of a word, its idf and its place."""

    weights: NDArray[
        np.float64
    ]  # of the logarithm of the count, of the idf, of its square, of the place from 0 to 1

    def draw(self, words: "PassageWords", random: Generator) -> str:
        """Keywords in the passage's order."""
        odds = np.exp(words.features @ self.weights)
        count = int(random.choice(list(LENGTHS), p=list(LENGTHS.values())))
        rows = random.choice(len(odds), count, replace=False, p=odds / odds.sum())
        return " ".join(words.words[row] for row in sorted(rows))


class PassageWords(NamedTuple):
    """The different words of a passage that aren't frequent, in its order, and their features (W, 4)."""

    words: list[str]
    features: NDArray[np.float64]


def passage_words(text: str, rarity: Rarity) -> PassageWords:
    """The words that a question about a passage could say."""
    said = words_of(text)
    counts = Counter(said)
    fit = [word for word in counts if rarity.says_something(word)]
    rows = [
        (math.log(counts[word]), rarity.of(word), rarity.of(word) ** 2, said.index(word) / len(said))
        for word in fit
    ]
    return PassageWords(fit, np.array(rows).reshape(-1, 4))


def words_of(text: str) -> list[str]:
    """Words without capitals."""
    return [word.casefold() for word in WORD.findall(text)]


def main() -> None:
    """Learn which words people ask for, measure the runs that aren't yet measured, print three tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument(
        "--keywords", action="store_true", help="keywords as well, a minute or two for each run"
    )
    parser.add_argument("runs", type=Path, nargs="*", metavar="RUN")
    given = parser.parse_args()
    telling, text = learn(given.data / "questions") if given.keywords else (None, "")
    results = Results("promises")
    for run in given.runs:
        collection, seed = run.name.rsplit("-", 1)
        if not results.holds({"collection": collection, "seed": int(seed)}):
            for entry in measure(run, given.data, collection, int(seed), telling):
                results.add({"collection": collection, "seed": int(seed), **entry})
    tables = (trade_off(results.rows), of_kept(results.rows), correlations(results.rows))
    results.conclude("\n\n".join(filter(None, (text, *tables))) + "\n")


# -- which words people ask for -------------------------------------------------------------------


def learn(folder: Path) -> tuple[Telling, str]:
    """The weights of all kinds together; and how well those of the other kinds tell the words of each."""
    fitted = {kind: list(examples(folder, kind)) for kind in KINDS}
    lines = [line(["questions", "area under the curve", "by count alone", "by idf alone"])]
    lines.append(line(["---", *["---:"] * 3]))
    for kind in KINDS:
        others = fit([each for other in KINDS if other != kind for each in fitted[other]])
        areas = [area(fitted[kind], each) for each in (others, np.eye(4)[0], np.eye(4)[1])]
        lines.append(line([kind, *(f"{each:.3f}" for each in areas)]))
    weights = fit([each for kind in KINDS for each in fitted[kind]])
    shown = ", ".join(f"{each:.2f}" for each in weights)
    return Telling(weights), "\n".join([*lines, "", f"Weights of count, idf, its square, place: {shown}"])


def examples(folder: Path, kind: str) -> Iterator[Fitted]:
    """Passages of a kind with their questions: features of the words, and which of them the question says."""
    documents = [each for each in read_documents(folder) if each.document_id.startswith(kind)]
    texts, rarity = {each.document_id: each.full_text for each in documents}, Rarity(documents)
    asked = {query.query_id: query.text for query in read_queries(folder / "queries.jsonl")}
    judged = [(query_id, next(iter(names))) for query_id, names in read_judgements(folder, "train").items()]
    pairs = [(query_id, name) for query_id, name in judged if name in texts]
    for row in np.random.default_rng(0).permutation(len(pairs))[:PAIRS]:
        query_id, name = pairs[row]
        words = passage_words(texts[name], rarity)
        if len(words.words) >= FEWEST:
            question = set(words_of(asked[query_id]))
            yield words.features, np.array([word in question for word in words.words])


def fit(rows: Sequence[Fitted]) -> NDArray[np.float64]:
    """Weights (4) of a logistic regression of what questions say on the features of words."""
    features, said = (np.concatenate(each) for each in zip(*rows, strict=True))
    scale = features.std(axis=0)
    found = LogisticRegression(max_iter=1_000, C=100).fit(features / scale, said)
    return np.asarray(found.coef_[0] / scale)


def area(rows: Sequence[Fitted], weights: NDArray[np.float64]) -> float:
    """Mean area under the curve within a passage."""
    return fmean(
        roc_auc_score(said, features @ weights) for features, said in rows if 0 < said.sum() < len(said)
    )


# -- what a run's models reach --------------------------------------------------------------------


def measure(
    run: Path, data: Path, collection: str, seed: int, telling: Telling | None
) -> Iterator[dict[str, Any]]:
    """Every model of a run with its gain on each kind of queries, and which one the run keeps."""
    real, msmarco = read_collection(data / collection), read_collection(data / CONTROL)
    plan = Plan(
        model=BASE_MODEL,
        corpus=str(run / "collection"),
        stages=("rank",),
        preset="default",
        files={},
        settings={},
    )
    choice = json.loads((run / CHOICE_FILE).read_text())
    kept = choice["tried"][choice["kept"]]["name"]
    bound = min((0.0, *(row["low"] for row in choice["general"][:1])))  # no row where the base model is kept
    held = of_run(run)
    keywords = None if telling is None else keywords_of(run, real.documents, telling, seed)
    makers = makers_of(plan, run, INTERPOLATIONS, Reading())
    on_held, on_real = try_models(makers, held), try_models(makers, real)
    further = [(on_real, MSMARCO, msmarco), (on_held, PACKAGE, general_collection())]
    if keywords is not None:
        further.append((on_held, KEYWORDS, keywords))
    rows = [
        on_held_out(each.result) | {REAL: mean_of(other.result)}
        for each, other in zip(on_held, on_real, strict=True)
    ]
    for tried, kind, asked in further:
        for row, result in zip(rows, _answers(makers, tried, asked), strict=True):
            row[kind] = mean_of(result)
    base: dict[str, float] = {}
    for synthetic, reached in zip(on_held, rows, strict=True):
        base = base or reached
        gains = {kind: reached[kind] - base[kind] for kind in reached}
        if synthetic.label == kept:
            gain = reached_on_others(data, str(run / "model")) - reached_on_others(data, BASE_MODEL)
            gains |= {KEPT: True, BOUND: bound, OTHERS: gain}
        yield {"model": synthetic.label, **gains}


@cache
def reached_on_others(data: Path, model: str) -> float:
    """A model's nDCG@10 on the questions that neither chose nor taught, over all passages of their kinds."""
    folder, random = data / "questions", np.random.default_rng(0)
    documents = tuple(each for each in read_documents(folder) if each.document_id.split("-")[0] in DRAWN)
    known = {each.document_id for each in documents}
    judged = {key: value for key, value in read_judgements(folder, "train").items() if value.keys() <= known}
    queries = [query for query in read_queries(folder / "queries.jsonl") if query.query_id in judged]
    of_kinds = [[each for each in queries if each.query_id.split("-")[0] == kind] for kind in DRAWN]
    rows = [
        random.permutation(len(each))[:count] for each, count in zip(of_kinds, DRAWN.values(), strict=True)
    ]
    drawn = [each[row] for each, chosen in zip(of_kinds, rows, strict=True) for row in chosen]
    collection = Collection(documents, tuple(drawn), judged)
    return float(evaluate_model(SparseEncoder.load(model), collection).values[MEASURE].mean())


def _answers(
    makers: Sequence[Maker], tried: Sequence[ComparedModel], collection: Collection
) -> Iterator[ModelResult]:
    for maker in makers:
        yield from answers(maker, [each for each in tried if each.name == maker.name], collection)[1]


def on_held_out(held: ModelResult) -> dict[str, float]:
    """nDCG@10 of queries set aside, of all and by kind."""
    by_kind = {kind: float(held.select(kind)[MEASURE].mean()) for kind in sorted(held.kinds)}
    return {ALL: mean_of(held), **by_kind}


def mean_of(result: ModelResult) -> float:
    """nDCG@10."""
    return float(result.values[MEASURE].mean())


def of_run(run: Path) -> Collection:
    """The queries that the run set aside."""
    documents = {each.document_id: each for each in read_documents(run / "collection")}
    kinds = {query.query_id: query.kind for query in read_synthetic_queries(run / "collection")}
    entries = list(read_candidates(run / "held.jsonl", document_ids=documents))
    return held_out_collection(documents, entries, kinds)


def keywords_of(run: Path, documents: Sequence[Document], telling: Telling, seed: int) -> Collection:
    """Keywords of the documents that the run set aside, with what the teacher finds for them."""
    named = {each.document_id: each for each in documents}
    rarity, random = Rarity(documents), np.random.default_rng(seed)
    aside = [query for query in read_synthetic_queries(run / "collection") if query.split == HELD]
    queries: list[SyntheticQuery] = []
    for name in dict.fromkeys(query.document_id for query in aside):
        words = passage_words(named[name].full_text, rarity)
        if len(words.words) >= max(LENGTHS):
            text = telling.draw(words, random)
            queries.append(SyntheticQuery(f"{HELD}-{len(queries)}", text, KEYWORDS, name, HELD))
    folder = run.with_name(f"{run.name}-keywords")
    write_collection(folder, Collected(list(documents), queries))
    teacher = make_teacher(SparseEncoder.load(BASE_MODEL), documents)
    prepare_candidates(folder, teacher, CandidateSettings(), HELD, folder / "held.jsonl")
    return held_out_collection(named, list(read_candidates(folder / "held.jsonl", document_ids=named)))


# -- tables ---------------------------------------------------------------------------------------


def trade_off(rows: Sequence[dict[str, Any]]) -> str:
    """Each model's gains in points, and those of the models that are kept: means of collections, of their seeds."""
    kinds = (ALL, REAL, PACKAGE, MSMARCO)
    lines = [line(["model", *kinds]), line(["---", *["---:"] * len(kinds)])]
    groups = [(name, [row for row in rows if row["model"] == name]) for name in names_of(rows, "model")]
    for name, of in (*groups, ("**kept**", [row for row in rows if row.get(KEPT)])):
        lines.append(line([name, *(f"{100 * mean_of_collections(of, kind):+.1f}" for kind in kinds)]))
    return "\n".join(lines)


def names_of(rows: Sequence[dict[str, Any]], key: str) -> list[str]:
    """The different models or collections of some rows, in their order."""
    return list(dict.fromkeys(row[key] for row in rows))


def mean_of_collections(rows: Sequence[dict[str, Any]], kind: str) -> float:
    """The mean over collections of the mean over seeds, so that each collection counts as much."""
    collections = names_of(rows, "collection")
    return fmean(fmean(row[kind] for row in rows if row["collection"] == each) for each in collections)


def of_kept(rows: Sequence[dict[str, Any]]) -> str:
    """What the kept models gain in each collection, in points, a figure for each seed."""
    lines = [
        line(["kept", "real", "beyond the better of base and idf", "package", "at least", "MS MARCO", OTHERS])
    ]
    lines.append(line(["---", *["---:"] * 6]))
    idf = {(row["collection"], row["seed"]): max(0.0, row[REAL]) for row in rows if row["model"] == IDF}
    for collection in names_of(rows, "collection"):
        of = [row for row in rows if row["collection"] == collection and row.get(KEPT)]
        beyond = [row[REAL] - idf[collection, row["seed"]] for row in of]
        columns = (
            [row[REAL] for row in of],
            beyond,
            *([row[kind] for row in of] for kind in (PACKAGE, BOUND, MSMARCO, OTHERS)),
        )
        lines.append(
            line([collection, *(", ".join(f"{100 * each:+.1f}" for each in column) for column in columns)])
        )
    return "\n".join(lines)


def correlations(rows: Sequence[dict[str, Any]]) -> str:
    """Spearman's correlation of each kind's gain with the real one, within each collection and over all models."""
    kinds = (ALL, "title", "sentence", "phrase", KEYWORDS)
    collections = names_of(rows, "collection")
    lines = [line(["promised by", *collections, "together", "mean gain promised"])]
    lines.append(line(["---", *["---:"] * (len(collections) + 2)]))
    learnt = [row for row in rows if row["model"] != "base"]
    for kind in kinds:
        parts = [[row for row in learnt if row["collection"] == each] for each in collections]
        cells = [correlation(part, kind) for part in (*parts, learnt)]
        promised = [row[kind] for row in learnt if kind in row]
        lines.append(line([kind, *cells, f"{100 * fmean(promised):+.1f}"]))
    return "\n".join([*lines, "", f"Mean real gain: {100 * fmean(row[REAL] for row in learnt):+.1f}"])


def correlation(rows: Sequence[dict[str, Any]], kind: str) -> str:
    """Spearman's correlation of a kind's gain with the real one, where there are such queries; else a dash."""
    of = [row for row in rows if kind in row]
    if not of:
        return "-"
    return f"{spearmanr([row[kind] for row in of], [row[REAL] for row in of]).statistic:.2f}"


if __name__ == "__main__":
    main()
