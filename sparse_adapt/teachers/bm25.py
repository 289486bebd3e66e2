"""BM25 as sparse vectors: word statistics that know nothing of meaning, and never miss a rare word.

Robertson and Zaragoza 2009, with Lucene's form of the inverse document frequency, computed by `bm25s`
(Lù 2024, arXiv:2407.03618). What a word adds to a score depends on the document alone, so documents are
vectors over the corpus's stems and queries count theirs: exact search, contributions and costs are those of
any other sparse model.
Dimensions: N documents, Q queries, S stems.
"""

from collections.abc import Sequence

import bm25s
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_matrix, csr_matrix
from Stemmer import Stemmer

from sparse_adapt.retrieve.search import Searcher, TopDocuments

SATURATION = 0.9  # k1: how soon repeating a word stops to count
LENGTH = 0.4  # b: how much a long document has to pay
WORD = r"(?u)\b\w\w+\b"
PORTER = Stemmer("porter")
STOP_WORDS = "english"  # the 33 that Lucene leaves out, by bm25s's list


class Bm25:
    """A corpus weighed by BM25, and queries in the same dimensions."""

    def __init__(self, documents: csr_matrix, stems: Sequence[str]) -> None:
        """documents: (N, S) what each stem adds to the score of a document; stems: (S) their names."""
        self.documents = documents
        self.stems = tuple(stems)
        self.columns = {stem: column for column, stem in enumerate(self.stems)}
        self._searcher: Searcher | None = None

    @classmethod
    def fit(cls, texts: Sequence[str], *, k1: float = SATURATION, b: float = LENGTH) -> "Bm25":
        """Weigh every stem of every text."""
        stemmed = _stemmed(texts)
        if not any(stemmed):
            return cls(csr_matrix((len(texts), 0), dtype=np.float32), ())
        index = bm25s.BM25(k1=k1, b=b, method="lucene")
        index.index(stemmed, create_empty_token=False, show_progress=False)
        stems = sorted(index.vocab_dict)  # bm25s numbers them as a set does, in another order in each process
        parts = (index.scores["data"], index.scores["indices"], index.scores["indptr"])
        weighed = csc_matrix(parts, shape=(len(texts), len(stems)))
        documents = weighed[:, [index.vocab_dict[stem] for stem in stems]].tocsr()
        return cls(documents, stems)

    def queries(self, texts: Sequence[str]) -> csr_matrix:
        """How often each query has each stem of the corpus: (Q, S), float32; other words are left out."""
        rows, columns = [], []
        for row, stems in enumerate(_stemmed(texts)):
            known = [self.columns[stem] for stem in stems if stem in self.columns]
            rows += [row] * len(known)
            columns += known
        ones = np.ones(len(rows), np.float32)
        counts = csr_matrix((ones, (rows, columns)), shape=(len(texts), len(self.stems)))
        counts.sum_duplicates()
        return counts

    def scores(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """The score of every document for each query: (Q, N). Large for large corpora; see `top_k`."""
        scores: NDArray[np.float32] = np.asarray((self.queries(texts) @ self.documents.T).todense())
        return scores

    def top_k(self, texts: Sequence[str], k: int) -> list[TopDocuments]:
        """For each query the rows and scores of its k best documents, as `search.Searcher` finds them."""
        if self._searcher is None:
            self._searcher = Searcher(self.documents)
        return self._searcher.top_k(self.queries(texts), k)


def _stemmed(texts: Sequence[str]) -> list[list[str]]:
    """The words of each text by Porter's stems (Porter 1980), in lower case.

    Single characters and stop words are left out before stemming.
    """
    stems: list[list[str]] = bm25s.tokenize(
        list(texts),
        token_pattern=WORD,
        stopwords=STOP_WORDS,
        stemmer=PORTER.stemWords,
        return_ids=False,
        show_progress=False,
    )
    return stems
