"""How many documents of a corpus hold each exact word, how long they are, and what a word tells by that."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from sparse_adapt.collection.readers import Document
from sparse_adapt.model.exact.analysis import Analyzer
from sparse_adapt.model.exact.language import general_shares
from sparse_adapt.report.progress import Progress, no_progress

GENERAL = 0.5  # part of general language in the share of documents, where an index holds more than one field
LARGEST = 1 << 26  # bytes of a file with the statistics, which is read whole
ROOM_A_WORD, ROOM_BESIDE = 24, 4_096  # bytes of such a file around a word, and of all that is no word


@dataclass(slots=True)
class Statistics:
    """Counts over the documents of a corpus, from which inverse document frequencies follow."""

    documents: int = 0
    words: int = 0
    titles: int = 0  # documents that have one
    title_words: int = 0
    frequencies: Counter[str] = field(default_factory=Counter)

    @classmethod
    def of(
        cls, documents: Iterable[Document], analyzer: Analyzer, progress: Progress = no_progress
    ) -> "Statistics":
        """The statistics of some documents, title and text. `progress` hears how many are counted."""
        counted = cls()
        for document in documents:
            counted.add(document, analyzer)
            progress(1)
        return counted

    def add(self, document: Document, analyzer: Analyzer) -> None:
        """Count one more document."""
        words = [word.stem for word in analyzer.words(document.full_text)]
        self.documents += 1
        self.words += len(words)
        self.frequencies.update(set(words))
        if title := sum(1 for _ in analyzer.words(document.title)):
            self.titles += 1
            self.title_words += title

    @property
    def mean_words(self) -> float:
        """Words of a document, at least 1."""
        return max(1.0, self.words / max(1, self.documents))

    @property
    def mean_title_words(self) -> float:
        """Words of a title, where there is one; at least 1."""
        return max(1.0, self.title_words / max(1, self.titles))

    def idf(self, language: str, general: float = GENERAL) -> dict[str, float]:
        """The inverse document frequency of each word: ln(1 + (1 - p) / (p + .5 / N)), as Lucene has it for a share p.

        `general`: the part of general language in p; 0 for an index that holds nothing but this corpus. Rare words
        beyond what a file has room for are left out: they tell what an unknown word does.
        Robertson and Zaragoza 2009.
        """
        known = general_shares(language) if general else {}
        return {
            word: self.idf_of((1.0 - general) * count / self.documents + general * known.get(word, 0.0))
            for word, count in self._with_room()
        }

    def _with_room(self) -> Iterator[tuple[str, int]]:
        """The words with their frequencies that fit into a file, the most frequent first where not all do."""
        room = LARGEST - ROOM_BESIDE
        fits = sum(len(word.encode()) + ROOM_A_WORD for word in self.frequencies) <= room
        for word, count in self.frequencies.items() if fits else self.frequencies.most_common():
            room -= len(word.encode()) + ROOM_A_WORD
            if room >= 0:
                yield word, count

    def idf_of(self, share: float) -> float:
        """The inverse document frequency of a word that this share of documents holds."""
        return math.log1p((1.0 - share) / (share + 0.5 / max(1, self.documents)))
