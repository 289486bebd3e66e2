"""Who ranks a corpus for a student: the student's own base model, word statistics and a dense model, added.

None of the three needs a label. Each errs in its own way, so that their sum knows more than any of them. A
dense model of one's choice takes the small one's place; a cross-encoder or a file of scores orders what the
others found. Scores of different rankers can't be added as they are: BM25's reach 40 where a cosine stays below 1.
Counted in standard deviations from the query's mean, every ranker has the same say (z-scores; Fox and Shaw 1994 for
the sum).
Dimensions: Q queries, N documents.
"""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from sparse_adapt.collection.examples import read_candidates
from sparse_adapt.collection.readers import Document, read_run
from sparse_adapt.errors import InputError, ModelError
from sparse_adapt.model.dense import SMALL, DenseEncoder
from sparse_adapt.model.folder import ModelFolder
from sparse_adapt.model.idf import scaled, sqrt_idf
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.model.weights import check_weights, loading
from sparse_adapt.report.progress import ProgressFor, no_progress_for
from sparse_adapt.retrieve.encode import encode
from sparse_adapt.teachers.bm25 import Bm25
from sparse_adapt.teachers.settings import ENSEMBLE, QUICK, SCORE_FILES

Scores = NDArray[np.float32]
Rank = Callable[[Sequence[str]], NDArray[np.floating]]
"""Queries -> the score of every document (Q, N)."""


class RerankedQuery(NamedTuple):
    """A query as a reranker sees it."""

    query_id: str
    text: str


class Reranker(NamedTuple):
    """Who scores a query and some documents; one that doesn't know all pairs gives NaN for those it doesn't."""

    score: Callable[[RerankedQuery, Sequence[Document]], list[float]]
    knows_all: bool = True


class Ranker(NamedTuple):
    """One ranker of a teacher; `is_student` of the model that is to learn, as it was before."""

    name: str
    rank: Rank
    is_student: bool = False


class Teacher(NamedTuple):
    """Rankers whose z-scores are added; the student, which tells what it would find; a reranker of what is found."""

    members: tuple[Ranker, ...]
    student: Rank
    reranker: Reranker | None = None
    reranker_name: str = ""

    @property
    def name(self) -> str:
        """Who teaches, in words."""
        return self.reranker_name or " + ".join(member.name for member in self.members)

    @property
    def others(self) -> "Teacher":
        """The teacher without the student's base model, which would be measured by itself; alone it stays."""
        others = tuple(member for member in self.members if not member.is_student)
        return self._replace(members=others or self.members)

    def scores(self, queries: Sequence[RerankedQuery], documents: Sequence[Document]) -> Scores:
        """The teacher's score of every document for each query: (Q, N). Raises InputError for one that is none."""
        texts = [query.text for query in queries]
        ranked = []
        for member in self.members:
            scores = np.asarray(member.rank(texts))
            bad = np.argwhere(~np.isfinite(scores))
            if len(bad):
                row, column = map(int, bad[0])
                raise not_a_score(member.name, scores[row, column], queries[row], documents[column])
            ranked.append(scores)
        return add_z_scores(ranked)


def not_a_score(teacher: str, score: float, query: RerankedQuery, document: Document) -> InputError:
    """The error for a teacher that gives something other than a number."""
    return InputError(
        teacher,
        f"gives {score} for query {query.query_id} ({query.text[:60]!r}) and document {document.document_id}; "
        "leave the document out or choose another --teacher",
    )


# -- who there is ---------------------------------------------------------------------------------


def make_teacher(
    student: SparseEncoder,
    documents: Sequence[Document],
    teacher: str = ENSEMBLE,
    *,
    cache: Path | None = None,
    progress_for: ProgressFor = no_progress_for,
) -> Teacher:
    """The teacher for some documents: base model, BM25 where it is installed, and a dense model.

    `teacher`: "ensemble", "bm25" (without a dense model), a dense model or a cross-encoder (a folder or Hub
    id), or a file of scores (candidates.jsonl or a TREC run). A dense model's cosines are rough, which standard
    scores and the order of best ones hardly notice. All models run where the student is. Raises what reading it
    raises.
    """
    reranker, dense, device = None, None, str(student.device)
    if teacher == ENSEMBLE:
        dense = DenseEncoder(SMALL, device=device, cache=cache, rough=True)
    elif teacher == QUICK:
        pass
    elif is_score_file(teacher):
        reranker = score_file(teacher)
    elif is_cross_encoder(teacher):
        reranker = cross_encoder(teacher, device)
    else:
        dense = DenseEncoder(teacher, device=device, cache=cache, rough=True)
    texts = [document.full_text for document in documents]
    vectors = encode(
        student, texts, "document", progress=progress_for("documents by the base model", len(texts))
    )
    token_scales = (
        sqrt_idf(vectors) if student.token_scales is None else np.ones(vectors.shape[1], np.float32)
    )
    weighed = scaled(vectors, token_scales).T.tocsr()
    plain = vectors.T.tocsr()
    members = [Ranker("base model with idf", lambda queries: _product(student, queries, weighed), True)]
    members.append(Ranker("BM25", Bm25.fit(texts).scores))
    if dense is not None:
        document_vectors = dense.encode(
            texts,
            "document",
            progress=progress_for(f"documents by {_short(dense.folder.source)}", len(texts)),
        ).T
        members.append(
            Ranker(
                _short(dense.folder.source), lambda queries: dense.encode(queries, "query") @ document_vectors
            )
        )
    name = f"{_short(teacher)} over what {' + '.join(member.name for member in members)} finds"
    return Teacher(
        tuple(members), lambda queries: _product(student, queries, plain), reranker, name if reranker else ""
    )


def _product(student: SparseEncoder, queries: Sequence[str], documents: csr_matrix) -> NDArray[np.float32]:
    """Scores (Q, N) of documents given as (V, N)."""
    return np.asarray((encode(student, list(queries), "query") @ documents).todense())


def _short(source: str) -> str:
    return Path(source).name or source


# -- rerankers ------------------------------------------------------------------------------------


def is_score_file(teacher: str) -> bool:
    """Whether a teacher is a file rather than a model."""
    return Path(teacher).is_file() or teacher.endswith(SCORE_FILES)


def is_cross_encoder(teacher: str) -> bool:
    """Whether a model folder's head gives one score for a pair of texts. A model of the Hub says so in its name."""
    path = Path(teacher) / "config.json"
    if not path.is_file():
        return "cross-encoder" in teacher.lower() or "reranker" in teacher.lower()
    try:
        kinds = json.loads(path.read_text(encoding="utf-8")).get("architectures") or []
    except (OSError, ValueError, AttributeError, RecursionError) as error:
        raise ModelError(f"{path}: not a model's configuration ({error}); check --teacher") from error
    return any(str(kind).endswith("ForSequenceClassification") for kind in kinds)


def cross_encoder(source: str, device: str) -> Reranker:
    """A model that reads query and document together. Safetensors only, no remote code."""
    from sentence_transformers import CrossEncoder

    folder = ModelFolder.of(source).path
    check_weights(folder, source)
    with loading(source, "a cross-encoder"):
        model = CrossEncoder(
            str(folder),
            num_labels=1,
            device=device,
            trust_remote_code=False,
            local_files_only=True,
            model_kwargs={"use_safetensors": True},
        )

    def score(query: RerankedQuery, documents: Sequence[Document]) -> list[float]:
        pairs = [(query.text, document.full_text) for document in documents]
        return [float(score) for score in model.predict(pairs, show_progress_bar=False)]

    return Reranker(score)


def score_file(path: str) -> Reranker:
    """Scores that are there already, for the pairs that the file names."""
    scores: Mapping[str, Mapping[str, float]]
    if path.endswith((".jsonl", ".jsonl.gz")):
        entries = read_candidates(path)
        scores = {
            each.query_id: dict(zip(each.document_ids, each.teacher_scores, strict=True)) for each in entries
        }
    else:
        scores = read_run(path)

    def score(query: RerankedQuery, documents: Sequence[Document]) -> list[float]:
        known = scores.get(query.query_id, {})
        return [known.get(document.document_id, math.nan) for document in documents]

    return Reranker(score, knows_all=False)


# -- scores, added ----------------------------------------------------------------------------------


def z_scores(scores: NDArray[np.floating]) -> Scores:
    """Each row in standard deviations from its mean: (Q, N). A row without spread, which says nothing, is 0."""
    values = scores.astype(np.float64)
    centred = values - values.mean(axis=1, keepdims=True) if values.shape[1] else values
    spread = centred.std(axis=1, keepdims=True) if values.shape[1] else np.ones((len(values), 1))
    flat = spread <= 1e-9 * np.abs(values).max(axis=1, keepdims=True, initial=0.0)
    return np.where(flat, 0.0, centred / np.where(flat, 1.0, spread)).astype(np.float32)


def add_z_scores(members: Sequence[NDArray[np.floating]]) -> Scores:
    """The sum of every member's z-scores (Q, N): the scores of the ensemble."""
    assert members, "an ensemble needs a member"
    total = np.zeros(members[0].shape, np.float32)
    for scores in members:
        total += z_scores(scores)
    return total
