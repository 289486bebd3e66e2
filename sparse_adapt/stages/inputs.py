"""What stages learn from: each kind of file, under which name it is found, and how it is read.

A stage lists the inputs that it takes. One that it needs is named or lies in the corpus folder; one that it takes
where there is one lies beside the corpus (`beside`) or is what the stage before read (`inherited`).
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Generic, Literal, TypeVar, cast

from sparse_adapt.collection.opening import variants

if TYPE_CHECKING:  # the readers load when a file is read, so that a table of stages loads fast
    from sparse_adapt.collection.examples import Candidates, Pair, Triplet
    from sparse_adapt.collection.glossary import Definition
    from sparse_adapt.collection.readers import Document
    from sparse_adapt.terms.mining import Term

Content = TypeVar("Content")
Value = TypeVar("Value", covariant=True)


@dataclass(frozen=True, slots=True)
class Input(Generic[Value]):
    """One kind of input: its key in run files, options and records, its file in a corpus folder, its reader.

    `source`: whether a stage needs it, or where it comes from if nobody names it.
    """

    key: str
    file: str
    read: Callable[[str, "Inputs"], Value]
    description: str
    source: Literal["needed", "beside", "inherited", "named"] = "needed"

    @property
    def names(self) -> tuple[str, ...]:
        """The names that its file may have in a folder, best first."""
        from sparse_adapt.collection.readers import DOCUMENT_FILES

        return DOCUMENT_FILES if self.key == "corpus" else variants(self.file)

    @property
    def needed(self) -> bool:
        """Whether a stage can't begin without it."""
        return self.source == "needed"


def inherited(wanted: Input[Content]) -> Input[Content]:
    """The same input for a stage that takes, unless another is named, what the stage before read."""
    return replace(wanted, source="inherited")


def beside(wanted: Input[Content]) -> Input[Content]:
    """The same input for a stage that takes it where it lies beside the corpus."""
    return replace(wanted, source="beside")


@dataclass(slots=True)
class Inputs:
    """The inputs of one stage: the model that it begins with, a path for each input, what is read of them."""

    model: str
    paths: Mapping[str, str]
    _read: dict[str, object] = field(default_factory=dict)

    def __contains__(self, wanted: Input[Content]) -> bool:
        return wanted.key in self.paths

    def __getitem__(self, wanted: Input[Content]) -> Content:
        """What an input holds, read once. The stage has it among its inputs."""
        if wanted.key not in self._read:
            self._read[wanted.key] = wanted.read(self.paths[wanted.key], self)
        return cast(Content, self._read[wanted.key])

    def get(self, wanted: Input[Content]) -> Content | None:
        """What an input holds, None where there is none."""
        return self[wanted] if wanted.key in self.paths else None

    def read(self, wanted: Iterable[Input[object]]) -> None:
        """Read all of these that are there. Raises what their readers raise for a file that is wrong."""
        for each in wanted:
            self.get(each)


def document_ids(inputs: Inputs) -> set[str] | None:
    """The ids of the corpus, None without a corpus."""
    documents = inputs.get(CORPUS)
    return None if documents is None else {document.document_id for document in documents}


def _documents(source: str, _: Inputs) -> "list[Document]":
    from sparse_adapt.collection.readers import read_documents

    return list(read_documents(source))


def _terms(source: str, _: Inputs) -> "list[Term]":
    from sparse_adapt.terms.mining import read_terms

    return read_terms(source)


def _definitions(source: str, _: Inputs) -> "list[Definition]":
    from sparse_adapt.collection.glossary import read_dictionary

    return read_dictionary(source)


def _candidates(source: str, inputs: Inputs) -> "list[Candidates]":
    from sparse_adapt.collection.examples import read_candidates

    return list(read_candidates(source, document_ids=document_ids(inputs)))


def _pairs(source: str, inputs: Inputs) -> "list[Pair]":
    from sparse_adapt.collection.examples import read_pairs

    return list(read_pairs(source, document_ids=document_ids(inputs)))


def _triplets(source: str, _: Inputs) -> "list[Triplet]":
    from sparse_adapt.collection.examples import read_triplets

    return list(read_triplets(source))


CORPUS = Input("corpus", "corpus.jsonl", _documents, "documents of the domain")
TERMS = Input("terms", "terms.json", _terms, "terms that deserve a token of their own")
DICTIONARY = Input("dictionary", "dictionary.jsonl", _definitions, "what the terms mean")
CANDIDATES = Input(
    "candidates", "candidates.jsonl", _candidates, "queries and documents that a teacher scored"
)
PAIRS = Input("pairs", "pairs.jsonl", _pairs, "queries and a document that each should find")
TRIPLETS = Input("triplets", "triplets.jsonl", _triplets, "texts and what contradicts them")
LABELLED = Input("labelled", "labelled.jsonl", _triplets, "inference pairs that somebody labelled")
BEFORE = Input("before", "", lambda source, _: source, "the model before the extension", "named")
