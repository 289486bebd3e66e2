"""How many terms: each further token has to save a fair share of what the tokens before it save on average.

Every mined term saves something over the corpus, but most of thousands save next to nothing, and each costs
rows that have to be taught, memory, and old pieces to match by. Gains fall off smoothly, so a threshold in
nats would mean another thing for every corpus; a share of the mean gain doesn't.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from sparse_adapt.collection.readers import Document
from sparse_adapt.terms.mining import Term
from sparse_adapt.terms.signs import Seen
from sparse_adapt.terms.words import find_words

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

SHARE = 0.25
FEW = 100  # so many terms cost too little to count
LEAST_DOCUMENTS = 2  # that say a glossary's term, for it to be learnt


def paying(terms: Sequence[Term], share: float = SHARE, few: int = FEW) -> tuple[list[Term], str]:
    """The terms before the first whose gain is below `share` of the mean gain of those before it, best first.

    The first `few` stay in any case. The sentence says where it stopped.
    """
    total = 0.0
    for number, term in enumerate(terms):
        gain = term.evidence.gain if term.evidence is not None else 0.0
        if number >= few and gain < share * total / number:
            kept = f"the next would save less than {share:.0%} of what each of these saves on average"
            return list(terms[:number]), f"{number:,} of {len(terms):,} words that save anything; {kept}"
        total += gain
    if not terms:
        return [], "no word that deserves a token; the vocabulary stays as it is"
    return list(terms), f"all {len(terms):,} words that save anything"


def from_glossary(
    names: Iterable[str],
    documents: Iterable[Document],
    tokenizer: "PreTrainedTokenizerFast",
    already: Sequence[Term],
) -> list[Term]:
    """Single words of a glossary that the corpus says often enough, that aren't terms or tokens yet."""
    known = {term.text.casefold() for term in already}
    wanted = {name.casefold(): name for name in names}
    counts: Counter[str] = Counter()
    seen = Seen(tokenizer)
    for document in documents:
        counts.update({word.casefold() for word in find_words(seen(document.full_text))} & wanted.keys())
    terms, normalised = [], {_key(tokenizer, name) for name in known}
    for key, name in wanted.items():
        if key in known or counts[key] < LEAST_DOCUMENTS:
            continue
        if not is_token(tokenizer, name) and _key(tokenizer, name) not in normalised:
            normalised.add(_key(tokenizer, name))
            terms.append(Term(name, "glossary"))
    return terms


def is_token(tokenizer: "PreTrainedTokenizerFast", name: str) -> bool:
    """Whether a word is one token of a tokenizer, in the middle of a text."""
    return len(tokenizer(f" {name}", add_special_tokens=False)["input_ids"]) <= 1


def _key(tokenizer: "PreTrainedTokenizerFast", name: str) -> str:
    normalizer = tokenizer.backend_tokenizer.normalizer
    return name if normalizer is None else str(normalizer.normalize_str(name))
