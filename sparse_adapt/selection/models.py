"""Which model of a run to keep: measured on queries that were set aside, never on anybody's judgements.

There are the base model, the model before distillation, the distilled one and those between the two, where an
interpolation weight of .5 guards against forgetting; each as it is, and with every token weighed by how much it
tells (`token_scales.json`): by the token scales that distillation taught or by powers of them, elsewhere by the
documents' idf. Among the distilled ones that lose nothing to the best beyond chance, the one
nearest to where it came from is kept: what a corpus says of how much a word tells is wrong for other
texts, and less of it is less wrong. Dimensions: V vocabulary."""

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, NamedTuple, cast

import numpy as np
import torch

from sparse_adapt.collection.examples import Candidates
from sparse_adapt.collection.readers import Document, Query
from sparse_adapt.model.idf import TokenScales, fourth_root, rows_for_idf
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.report.progress import Progress, no_progress, passing
from sparse_adapt.retrieve.encode import encode
from sparse_adapt.retrieve.evaluate import Collection, ModelResult, evaluate_model, evaluate_vectors
from sparse_adapt.retrieve.hybrid import token_weights
from sparse_adapt.retrieve.significance import paired
from sparse_adapt.selection.evidence import GENERAL, by_kind
from sparse_adapt.selection.general import GeneralRow, general_rows
from sparse_adapt.selection.record import BASE, EXACT, Chosen, Tried, has_words
from sparse_adapt.selection.retention import EncodedCollection, encode_unscaled, texts_in, with_exact_words
from sparse_adapt.selection.rule import MAY_LOSE

MEASURE = "ndcg@10"
COMPARED_DOCUMENTS = 2_000  # where nothing is taught
GRADES = 10  # documents of a query that are to be found
FORGETS = MAY_LOSE  # nDCG@10 of general questions that no model may lose
LONGER = 1.1  # documents may have at most so many times the base model's non-zero weights
TokenWeighting = Literal[
    "", "idf", "token scales", "token scales^3/4", "token scales^1/2", "token scales^1/4"
]
POWERS: dict[TokenWeighting, float] = {
    "token scales": 1.0,
    "token scales^3/4": 0.75,
    "token scales^1/2": 0.5,
    "token scales^1/4": 0.25,
}


class Maker(NamedTuple):
    """A model that could be kept: its name, how far back it stands towards the one before distillation."""

    name: str
    back: float | None  # None for a model that isn't distilled
    make: Callable[[], SparseEncoder]


@dataclass(frozen=True, slots=True)
class ComparedModel:
    """What a model reached on the queries set aside, its tokens weighed or not.

    `weighed`: by the documents' idf, or by what the model itself has learnt: `token_scales` (V). `general`, `forgets`:
    what it reaches on general questions, and whether it may lose too much there; None where it wasn't asked.
    """

    name: str
    weighed: TokenWeighting
    back: float | None
    result: ModelResult
    token_scales: TokenScales | None = None
    general: ModelResult | None = None
    forgets: bool | None = None

    @property
    def label(self) -> str:
        """Its name for people."""
        return f"{self.name} with {self.weighed}" if self.weighed else self.name

    @property
    def figures(self) -> dict[str, float]:
        """Mean of each measure."""
        return self.result.means()


@dataclass(frozen=True, slots=True)
class Choice:
    """All that was tried, the first of it the base model as it is, and which is kept.

    `without_words`: the one to keep where that is refused. `general`: of each model that was asked, without token
    scales, by its maker's name, the vectors of general questions and passages. `baseline`: the one that what was taught
    has to beat: the base model, or that with exact words.
    """

    tried: tuple[ComparedModel, ...]
    kept: int
    without_words: int = 0
    general: Mapping[str, EncodedCollection] = field(default_factory=dict)
    baseline: int = 0

    @property
    def best(self) -> ComparedModel:
        """What is kept."""
        return self.tried[self.kept]


def merge(towards: SparseEncoder, model: SparseEncoder, back: float) -> SparseEncoder:
    """The model whose weights are `back` of the way from those of `model` to those of `towards`.

    Both have the same vocabulary. Wortsman et al. 2022, arXiv:2109.01903.
    """
    merged = copy.deepcopy(model)
    before = dict(towards.masked_lm.named_parameters())
    with torch.no_grad():
        for name, value in merged.masked_lm.named_parameters():  # shared ones once, not under every name
            value.lerp_(before[name].to(value.device), back)
    if merged.query_side is not None and towards.query_side is not None:
        merged.query_side = merged.query_side.towards(towards.query_side, back)
    return merged


def added(model: SparseEncoder, base: SparseEncoder, ranked: SparseEncoder, share: float) -> SparseEncoder:
    """A model with so much of what another changed of the base model that both come from, and with its token scales.

    Rows that `model` has beyond those of the others stay as they are, and their tokens count once. Task arithmetic,
    Ilharco et al. 2022, arXiv:2212.04089.
    """
    before, after = (dict(each.masked_lm.named_parameters()) for each in (base, ranked))
    with torch.no_grad():
        for name, value in model.masked_lm.named_parameters():  # shared ones once, not under every name
            change = after[name] - before[name]
            value[: len(change)].add_(share * change)
    token_scales = ranked.token_scales_of()
    model.token_scales = np.pad(
        token_scales, (0, model.vocabulary_size - len(token_scales)), constant_values=1.0
    )
    return model


def held_out_collection(
    documents: Mapping[str, Document], entries: Sequence[Candidates], kinds: Mapping[str, str] | None = None
) -> Collection:
    """The queries set aside over all of their candidates: those that the teacher scores best are to be found.

    The best of ten is worth ten, the next nine, and so on. `kinds`: of what kind each synthetic query is, by its id.
    """
    named = {document_id for entry in entries for document_id in entry.document_ids}
    return Collection(
        tuple(document for document_id, document in documents.items() if document_id in named),
        tuple(Query(entry.query_id, entry.query, (kinds or {}).get(entry.query_id, "")) for entry in entries),
        {entry.query_id: _graded(entry) for entry in entries},
    )


def _graded(entry: Candidates) -> dict[str, int]:
    order = np.argsort(-np.array(entry.teacher_scores), kind="stable")[:GRADES]
    return {entry.document_ids[row]: GRADES - place for place, row in enumerate(order)}


def _answer(
    encoded: EncodedCollection, model: SparseEncoder, token_scales: TokenScales | None
) -> ModelResult:
    """What a model reaches on a collection with some token scales (V), from its vectors without them."""
    collection, queries, documents = encoded.with_scales(model, token_scales)
    result = evaluate_vectors(queries, documents, collection)
    return replace(result, run={})  # of many models gigabytes of rankings, which nobody reads


def try_models(
    makers: Sequence[Maker], collection: Collection, progress: Progress = no_progress
) -> list[ComparedModel]:
    """Measure every model with and without token scales; one that wasn't taught its own stays as it is.

    The first has to be the base model.
    """
    tried: list[ComparedModel] = []
    for maker in makers:
        encoder = maker.make()
        own, encoded = encoder.token_scales, encode_unscaled(encoder, collection)
        rows: dict[TokenWeighting, TokenScales | None] = {"": None}
        if own is None:
            rows["idf"] = fourth_root(token_weights(encoder, encoded.documents))
        elif maker.back is None:
            rows[""] = encoder.token_scales_of()
        else:
            learnt = encoder.token_scales_of()
            rows |= {name: _power(learnt, power) for name, power in POWERS.items()}
        tried += (
            ComparedModel(
                maker.name, weighed, maker.back, _answer(encoded, encoder, token_scales), token_scales
            )
            for weighed, token_scales in rows.items()
        )
        progress(1)
    return tried


def answers(
    maker: Maker, tried: Sequence[ComparedModel], collection: Collection, progress: Progress = no_progress
) -> tuple[EncodedCollection, list[ModelResult]]:
    """What a model reaches on a further collection with each of the token scales that it was tried with.

    Its vectors, without token scales, come first.
    """
    encoder = maker.make()
    encoded = encode_unscaled(encoder, collection, progress)
    return encoded, [_answer(encoded, encoder, each.token_scales) for each in tried]


def _power(token_scales: TokenScales, power: float) -> TokenScales:
    return np.asarray(token_scales**power, np.float32)


def compare_as_they_are(
    makers: Sequence[Maker], collection: Collection, progress: Progress = no_progress
) -> Choice:
    """Measure models with the token scales they have; the last is kept unless it is worse than the first."""
    candidates = []
    for maker in makers:
        candidates.append(ComparedModel(maker.name, "", None, evaluate_model(maker.make(), collection)))
        progress(1)
    worse = _is_worse(candidates[-1].result, candidates[0].result)
    return Choice(tuple(candidates), 0 if worse else len(candidates) - 1)


class Picked(NamedTuple):
    """The place of the model to keep, and that of the best, in whose place it may stand."""

    kept: int
    best: int


def choose_from(
    makers: Sequence[Maker],
    tried: Sequence[ComparedModel],
    general: Collection | None,
    *,
    words: bool = False,
) -> Choice:
    """Choose as `choose` does, and ask general questions of the models that the choice hangs on alone.

    A model that wasn't asked is taken for one that loses nothing, until it would be kept or is the best: what is
    chosen so is what all answers together would choose. To ask them takes a large model longer than all else here.
    """
    asked, vectors = list(tried), dict[str, EncodedCollection]()
    by_name = {maker.name: maker for maker in makers}

    def ask(collection: Collection, name: str) -> None:
        if name in vectors:
            return
        places = [place for place, each in enumerate(asked) if each.name == name]
        progress = passing(f"texts of general questions, read by {name}", texts_in(collection))
        rows = [asked[place] for place in places]
        vectors[name], found = answers(by_name[name], rows, collection, progress)
        base = found[0] if asked[0].general is None else asked[0].general
        for place, each in zip(places, found, strict=True):
            asked[place] = replace(asked[place], general=each, forgets=may_forget(each, base))

    def settled(pick: Callable[[], Picked]) -> int:
        while True:
            picked = pick()
            unasked = [asked[place].name for place in picked if place and asked[place].forgets is None]
            if general is None or not unasked:
                return picked.kept
            ask(general, makers[0].name)
            ask(general, unasked[0])

    kept = settled(lambda: choose(asked, words=words))
    baseline = baseline_of(asked)
    instead = settled(lambda: choose_without_words(asked)) if has_words(asked[kept].name) else baseline
    return Choice(tuple(asked), kept, instead, vectors, baseline)


def baseline_of(candidates: Sequence[ComparedModel]) -> int:
    """The place of the model with exact words and nothing learnt, else that of the base model."""
    return next((place for place, each in enumerate(candidates) if each.label == EXACT), 0)


def compare_words(
    model: SparseEncoder,
    base_scales: TokenScales | None,
    held_out: Collection,
    general: Collection,
    progress: Progress = no_progress,
) -> Choice:
    """A model without its exact words, and with them: they are kept unless general questions may lose by them.

    Each text is encoded once, since exact words change no weight. `base_scales` (V): token scales without words.
    """
    words = model.words
    asked: dict[str, list[tuple[EncodedCollection, ModelResult]]] = {BASE: [], EXACT: []}
    for collection in (held_out, general):
        model.words = None
        plain = encode_unscaled(model, collection, progress)
        asked[BASE].append((plain, _answer(plain, model, base_scales)))
        model.words = words
        whole = with_exact_words(model, plain)
        asked[EXACT].append((whole, _answer(whole, model, model.token_scales)))
    base_on_general = asked[BASE][1][1]
    tried = tuple(
        ComparedModel(name, "", None, held[1], None, there[1], may_forget(there[1], base_on_general))
        for name, (held, there) in asked.items()
    )
    vectors = {name: there[0] for name, (_, there) in asked.items()}
    return Choice(tried, 0 if tried[1].forgets else 1, 0, vectors, 1)


def choose(candidates: Sequence[ComparedModel], *, words: bool = False) -> Picked:
    """The one to keep; the first candidate is the base model as it is.

    None is kept that may lose more than `FORGETS` on general questions. With `words` the base model, and one that
    learnt to rank alone, are kept only where no other is left.
    """
    most = LONGER * candidates[0].figures["nonzero_document"]
    bound = [place for place, each in enumerate(candidates) if not each.forgets]
    able = [place for place in bound if not words or has_words(candidates[place].name)] or bound
    short = [place for place in able if candidates[place].figures["nonzero_document"] <= most] or able
    best = max(short, key=lambda place: candidates[place].figures[MEASURE])
    if candidates[best].back is None:
        return Picked(best, best)
    alike = set(POWERS) if candidates[best].weighed in POWERS else {candidates[best].weighed}
    as_good = [
        place
        for place in short
        if candidates[place].back is not None
        and candidates[place].weighed in alike
        and not _is_worse(candidates[place].result, candidates[best].result)
    ]
    kept = max(
        as_good,
        key=lambda place: (candidates[place].back or 0.0, -POWERS.get(candidates[place].weighed, 0.0)),
    )
    return Picked(kept, best)


def choose_without_words(candidates: Sequence[ComparedModel]) -> Picked:
    """The one to keep among those that learnt no words."""
    places = [place for place, each in enumerate(candidates) if not has_words(each.name)]
    return Picked(*(places[place] for place in choose([candidates[place] for place in places])))


def may_forget(model: ModelResult, base: ModelResult) -> bool:
    """Whether a model may lose more than `FORGETS` on general questions, or loses as much on a kind beyond chance.

    What may be lost is the low end of the 95 % interval that `general_rows` has and the verdict says.
    """
    whole, *kinds = by_kind(GENERAL, model, base)
    return whole.low < -FORGETS or any(kind.loses and kind.gain < -FORGETS for kind in kinds)


def _is_worse(result: ModelResult, best: ModelResult) -> bool:
    """Whether a model reaches less than another beyond chance."""
    return paired(result.values[MEASURE], best.values[MEASURE]).high < 0.0


def token_scales_from(encoder: SparseEncoder, documents: Sequence[Document]) -> TokenScales:
    """The token scales of a model for a corpus, from evenly spaced documents of it: idf^(1/4), (V)."""
    rows = rows_for_idf(len(documents))
    encoder.token_scales = None
    return fourth_root(encode(encoder, [documents[row].full_text for row in rows], "document"))


def record(choice: Choice) -> Chosen:
    """What was tried as plain values, each beside the base model."""
    base = choice.tried[0]
    rows: list[Tried] = []
    for each in choice.tried:
        gain = paired(each.result.values[MEASURE], base.result.values[MEASURE])
        general = {}
        if each.general is not None:
            reached = round(each.general.means()[MEASURE], 5)
            general = {"general": reached, "may_forget": each.forgets}
        row = {
            "name": each.label,
            "back": each.back,
            "weighed": each.weighed,
            **{name: round(value, 5) for name, value in each.figures.items()},
            **general,
            "difference": round(gain.value, 5),
            "low": round(gain.low, 5),
            "high": round(gain.high, 5),
        }
        rows.append(cast("Tried", row))
    return {
        "measure": MEASURE,
        "queries": len(base.result.queries),
        "kept": choice.kept,
        "tried": rows,
        "general": [row._asdict() for row in _general_rows(choice)],
    }


def _general_rows(choice: Choice) -> list[GeneralRow]:
    """What the kept model reaches on general questions beside the base model; nothing where that is kept."""
    best, base = choice.best.general, choice.tried[0].general
    if choice.kept == 0 or best is None or base is None:
        return []
    return general_rows(best.queries, best.values, base.values)


def keep(
    choice: Choice, makers: Sequence[Maker], documents: Sequence[Document] | None, folder: Path
) -> SparseEncoder:
    """Make the chosen model once more, with its token scales, and save it; without documents it keeps those it has."""
    best = choice.best
    encoder = next(maker for maker in makers if maker.name == best.name).make()
    if choice.kept != 0 and documents is not None:
        if best.weighed == "idf":
            encoder.token_scales = token_scales_from(encoder, documents)
        elif best.weighed:
            encoder.token_scales = _power(encoder.token_scales_of(), POWERS[best.weighed])
        elif best.back is not None:
            encoder.token_scales = None
        encoder.fold_scales()
    encoder.save(folder)
    return encoder
