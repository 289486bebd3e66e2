"""What an explorer looks at: one model or two, a corpus with all its vectors, and what it may be judged by."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from threading import RLock

import numpy as np
from scipy.sparse import csr_matrix

from sparse_adapt.collection.glossary import Definition, read_dictionary
from sparse_adapt.collection.readers import Document, read_documents
from sparse_adapt.collection.sources import file_beside, judged_split
from sparse_adapt.errors import InputError, ModelError
from sparse_adapt.files.place import source_in
from sparse_adapt.model.encoder import NewToken
from sparse_adapt.model.layout import is_dense
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.pipeline.before_after import Scales
from sparse_adapt.pipeline.run import REPORT_FILE, read_finished
from sparse_adapt.plugins.pages.subject import EncodedSubject
from sparse_adapt.report.progress import Progress, no_progress
from sparse_adapt.retrieve.activity import Activity, Bools
from sparse_adapt.retrieve.evaluate import Collection, read_collection
from sparse_adapt.retrieve.hybrid import document_vectors, token_weights
from sparse_adapt.stages.record import read_before

BEFORE, AFTER, ONLY = "before", "after", "model"


@dataclass(frozen=True)
class ExploredPlaces:
    """Where a model, the one beside it and a corpus lie."""

    model: str
    against: str | None
    corpus: str


@dataclass
class Explored:
    """Models by their names, documents, and what is worked out when it is first asked for."""

    places: ExploredPlaces
    documents: tuple[Document, ...]
    encoded: Mapping[str, EncodedSubject]
    lock: RLock = field(default_factory=RLock)

    @property
    def main(self) -> EncodedSubject:
        """The model that is asked about: the adapted one where there are two."""
        return self.encoded[AFTER if AFTER in self.encoded else ONLY]

    @property
    def terms(self) -> dict[int, NewToken]:
        """Its new tokens by their ids."""
        return {token.token_id: token for token in self.main.model.new_tokens}

    @cached_property
    def rows(self) -> dict[str, int]:
        """The row of each document by its id."""
        return {document.document_id: row for row, document in enumerate(self.documents)}

    @cached_property
    def definitions(self) -> dict[str, Definition]:
        """What the corpus's dictionary says of terms, in lower case."""
        path = file_beside(self.places.corpus, "dictionary.jsonl")
        try:
            return {} if path is None else {each.term.casefold(): each for each in read_dictionary(path)}
        except InputError:
            return {}

    @cached_property
    def judged(self) -> Collection | None:
        """Judged queries of the corpus, of the test split before others; None where there are none."""
        split = judged_split(self.places.corpus)
        return None if split is None else read_collection(self.places.corpus, split)

    def grades(self, text: str) -> Mapping[str, int] | None:
        """Which documents are relevant to a query, where it is a judged one."""
        if self.judged is None:
            return None
        asked = " ".join(text.casefold().split())
        names = (
            each.query_id for each in self.judged.queries if " ".join(each.text.casefold().split()) == asked
        )
        return next((self.judged.judgements[name] for name in names), None)

    @cached_property
    def scales(self) -> Scales:
        """What an amount is weighed by that lowers a term; the documents' vectors are those that are there already."""
        model, texts = self.main.model, [document.full_text for document in self.documents]
        vectors = token_weights(model, self.main.documents)
        activity = Activity.of(model, texts, "document", vectors=vectors)
        return Scales.over(activity, self.documents, self.judged)

    @property
    def says(self) -> Bools:
        """Which document says which new term: (documents, T)."""
        assert self.scales.documents is not None, "scales of a corpus"
        return self.scales.documents.activity.says


def find_places(source: str, against: str | None, corpus: str | None) -> ExploredPlaces:
    """The places of a run, whose base model stands beside the final one, or of a model. Names come first.

    Raises InputError for a run that isn't whole and ModelError for a dense model.
    """
    folder = Path(source)
    if (folder / REPORT_FILE).is_file() and not (folder / "config.json").is_file():
        run = read_finished(folder)
        base = (
            source_in(str(run.report["model"]), folder) if isinstance(run.report.get("model"), str) else None
        )
        if corpus is None and run.corpus is None:
            raise InputError(source, "a run without a corpus; name one: --corpus CORPUS")
        places = ExploredPlaces(str(run.model), against or base, corpus or str(run.corpus))
    else:
        known = corpus or read_before(source).get("corpus")
        if known is None:
            raise InputError(source, "its record names no corpus; name one: --corpus CORPUS")
        places = ExploredPlaces(source, against, known)
    for place in (places.model, places.against):
        if place is not None and Path(place).is_dir() and is_dense(Path(place)):
            raise ModelError(
                f"{place}: is a dense model, where a SPLADE model is needed, such as splade-tiny"
            )
    return places


def explored(
    places: ExploredPlaces, progress_for: Callable[[str, int], Progress] = lambda what, total: no_progress
) -> Explored:
    """Load the models and encode the corpus. Raises InputError where a model gives no document any weight."""
    documents = tuple(read_documents(places.corpus))
    named = {ONLY: places.model}
    if places.against is not None:
        named = {BEFORE: places.against, AFTER: places.model}
    encoded = {}
    for name, place in named.items():
        model = SparseEncoder.load(place)
        progress = progress_for(f"documents, {name}", len(documents))
        vectors = document_vectors(model, documents, progress=progress)
        if vectors.nnz == 0:
            raise InputError(
                places.corpus, f"no document has any weight under {place}: model and corpus don't fit"
            )
        nothing = csr_matrix((0, vectors.shape[1]), dtype=np.float32)
        encoded[name] = EncodedSubject(model, vectors, nothing, nothing)
    subject = Explored(places, documents, encoded)
    if subject.terms:
        progress = progress_for("scales of the terms", 1)
        _ = subject.scales  # now, so that nobody waits for it when a term is looked at
        progress(1)
    return subject
