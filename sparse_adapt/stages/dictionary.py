"""Dictionary: the model learns from definitions, both ways, and from made-up texts which term is meant.

The sentence that defines a term is read with the term or its defining words masked; and the definition alone,
without the term, must bring the term to mind, as a query does that describes a thing without its name. Definitions
are few, so most of a step are texts made from them and from the documents, whose meaning a dense encoder judges;
frozen features can't follow it, so every weight learns, held by an anchor.
"""

from collections.abc import Sequence

from sparse_adapt import config
from sparse_adapt.errors import ConfigError
from sparse_adapt.glossary import Definition, sentence
from sparse_adapt.model import SparseEncoder
from sparse_adapt.stages.lesson import Lesson
from sparse_adapt.stages.texts import Texts
from sparse_adapt.training import epochs_to_steps


def dictionary(
    encoder: SparseEncoder,
    definitions: Sequence[Definition],
    others: Sequence[str],
    settings: config.Dictionary,
) -> Lesson:
    """The stage over definitions, with `others` as the texts that have nothing to do with most of them.

    Raises ConfigError where no definition is of a new term.
    """
    sayings = [text for definition in definitions for text in _sayings(definition)]
    owners = [number for number, definition in enumerate(definitions) for _ in _sayings(definition)]
    texts = Texts(encoder, [*sayings, *others])
    about = texts.says.copy()
    for number in range(len(definitions)):
        rows = [row for row, owner in enumerate(owners) if owner == number]
        about[rows] |= texts.says[rows[0]]  # the first saying is the sentence that holds the term
    if not about[: len(sayings)].any():
        raise ConfigError(
            f"none of the {len(definitions):,} definitions is of a new term; extend the model with these terms first"
        )
    settings = settings.settled(len(encoder.new_tokens))
    return Lesson("dictionary", encoder, texts, about, settings, epochs_to_steps(settings, len(sayings)))


def _sayings(definition: Definition) -> list[str]:
    """The rendered sentence, the definition alone, and each example."""
    return [sentence(definition), definition.definition, *definition.examples]
