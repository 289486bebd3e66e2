"""What to run next: only what goes on from here, and works as it stands."""

import shlex
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from sparse_adapt.files.place import free as free

if TYPE_CHECKING:
    from sparse_adapt.collection.columns import ColumnsLike
    from sparse_adapt.stages.inputs import Input

FLAGS = {"dictionary": "--glossary", "before": "--baseline"}  # of inputs, where it isn't the input's key
DENSE_FLOW = (
    "extend",
    "preserve",
    "joint",
    "contrast",
    "distill",
)  # stages of a dense encoder, each after the other


def line(*words: object) -> str:
    """A command, ready to be copied."""
    return shlex.join(["sparse-adapt", *map(str, words)])


def column_words(columns: "ColumnsLike") -> list[str]:
    """The option that chooses columns once more."""
    pairs = (
        [f"{field}={column}" for field, column in columns.items()]
        if isinstance(columns, Mapping)
        else columns
    )
    return ["--columns", ",".join(pairs)] if columns else []


def flag_of(key: str) -> str:
    """The option that names an input of a stage, by the input's key."""
    return FLAGS.get(key, f"--{key}")


def after_stage(name: str, model: str, out: Path, files: Mapping[str, str]) -> list[str]:
    """What follows a stage that read these files, by their keys: the next stage that has its inputs, else to measure.

    `model`: what the stage began with; `out`: what it wrote. Without a corpus it is the next stage's help.
    """
    from sparse_adapt.stages.record import read_before
    from sparse_adapt.stages.table import find_stage

    later = _later(name, out)
    corpus = files.get("corpus") or read_before(str(out)).get("corpus") or _corpus_beside(files.values())
    if corpus is None:
        return [line(later[0] if later else "evaluate", "--help")]
    for stage in later:
        sources = _given(corpus, [each for each in find_stage(stage).reads if each.needed])
        if sources is not None:
            return [line(stage, "--model", out, *sources, "-o", free(out.with_name(stage)))]
    return lines_to_measure(model, out, corpus)


def lines_to_measure(before: str, model: Path, corpus: str) -> list[str]:
    """How to measure a model where its corpus has judgements, and how to write the vectors of a sparse one."""
    from sparse_adapt.collection.sources import judged_split
    from sparse_adapt.model.layout import is_dense

    split, commands = judged_split(corpus), list[str]()
    if split is not None:
        beside = [] if split == "test" else ["--split", split]
        beside += [] if before == str(model) else ["--baseline", before]
        commands.append(line("evaluate", "--model", model, "--collection", corpus, *beside))
    if not is_dense(model):
        commands.append(exported(str(model), corpus, f"{model}-export"))
    return commands


def exported(model: str, corpus: str, out: str) -> str:
    """How to write the vectors of a corpus for Lucene."""
    return line("export", "anserini", "--model", model, "--corpus", corpus, "-o", free(out))


def a_query(corpus: str | None) -> str | None:
    """A query that somebody may ask of a corpus: one of its own, else the title of a document, else None."""
    from sparse_adapt.collection.readers import read_documents, read_queries
    from sparse_adapt.errors import InputError

    with suppress(InputError):
        if corpus is not None:
            return next(iter(read_queries(corpus))).text
    with suppress(InputError, StopIteration):
        if corpus is not None:
            return next(each.title for each in read_documents(corpus) if each.title)
    return None


def _later(name: str, model: Path) -> list[str]:
    """The stages that follow one on the main path of a model's kind."""
    from sparse_adapt.model.layout import is_dense
    from sparse_adapt.stages.table import stage_names, usual_stages

    flow, order = DENSE_FLOW if is_dense(model) else usual_stages(), stage_names()
    return [later for later in order[order.index(name) + 1 :] if later in flow]


def _given(corpus: str, needed: "Iterable[Input[object]]") -> list[str] | None:
    """The options that name these inputs, which lie in a corpus folder; None where one doesn't."""
    import corpora
    from sparse_adapt.collection.sources import file_beside

    words: list[str] = []
    for each in needed:
        place = corpus if each.key == "corpus" or corpus in corpora.NAMES else file_beside(corpus, each.file)
        if place is None:
            return None
        words += [flag_of(each.key), str(place)]
    return words


def _corpus_beside(files: Iterable[str]) -> str | None:
    """The corpus that one of these files lies beside, if there is one."""
    import corpora
    from sparse_adapt.collection.sources import file_beside

    for file in files:
        if file in corpora.NAMES:
            return file
        if (beside := file_beside(file, "corpus.jsonl")) is not None:
            return str(beside.parent)
    return None
