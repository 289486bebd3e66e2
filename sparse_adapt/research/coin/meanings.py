"""A glossary for coined words: what dictionaries and the collection itself say of the real words, in coined words.

A definition that says its own word teaches nothing, so it is left out.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from sparse_adapt.collection.glossary import Definition, read_dictionary
from sparse_adapt.collection.readers import Document
from sparse_adapt.errors import InputError
from sparse_adapt.research.coin.families import Coinage
from sparse_adapt.terms.definitions import mine_definitions

A_WORD = 2  # definitions of one word
INDEX, DATA = "index.noun", "data.noun"  # files of WordNet (Miller 1995)
QUOTED = re.compile(r'"([^"]+)"')


def coined_glossary(
    coinage: Coinage, bases: Sequence[str], source: str, documents: Iterable[Document]
) -> list[Definition]:
    """Definitions of the words that were replaced, from `source` first and then from the documents, in coined words.

    source: a glossary, or a folder with WordNet's files. Raises InputError where neither says anything.
    """
    found: dict[str, list[Definition]] = {base: [] for base in bases}
    mined = (each.definition for each in mine_definitions(documents, list(coinage.base)))
    for definition in [*_told(source, coinage), *mined]:
        base = coinage.base[definition.term.lower()]
        said = coinage.bases(definition.definition)
        if base not in said and len(found[base]) < A_WORD:
            examples = [example for example in definition.examples if base in coinage.bases(example)]
            found[base].append(
                Definition(
                    coinage.form[base],
                    coinage.replace(definition.definition),
                    tuple(map(coinage.replace, examples)),
                )
            )
    glossary = [definition for base in bases for definition in found[base]]
    if not glossary:
        raise InputError(source, f"defines none of the {len(bases):,} words that are replaced; name another")
    return glossary


def _told(source: str, coinage: Coinage) -> Iterator[Definition]:
    """A dictionary's definitions of the words that were replaced, in its order."""
    if (Path(source) / DATA).is_file():
        yield from _wordnet(Path(source), coinage)
        return
    yield from (each for each in read_dictionary(source) if each.term.lower() in coinage.base)


def _wordnet(folder: Path, coinage: Coinage) -> Iterator[Definition]:
    """The glosses of nouns, the most usual sense first. An index line ends in the byte offsets of its senses."""
    with (folder / INDEX).open(encoding="utf-8") as index, (folder / DATA).open("rb") as data:
        for line in index:
            word, *fields = line.split()
            if line.startswith(" ") or word not in coinage.base:
                continue
            senses = int(fields[1])
            for offset in fields[-senses:][:A_WORD]:
                data.seek(int(offset))
                gloss = data.readline().decode().partition(" | ")[2].strip()
                meaning = QUOTED.sub("", gloss).strip(" ;")
                if meaning:
                    yield Definition(word, meaning, tuple(QUOTED.findall(gloss)))
