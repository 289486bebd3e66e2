"""Pocket, an engine that tests add to the others: its files, the command that loads them, and its search."""

from collections.abc import Iterator
from contextlib import contextmanager

from sparse_adapt.collection.readers import Run
from sparse_adapt.plugins.engines.engine import FloatEngine
from sparse_adapt.plugins.engines.layout import ExportLayout, ExportSource, in_parts, vector_line
from sparse_adapt.plugins.engines.manifest import ExportFolder
from sparse_adapt.retrieve.vectors.folder import EncodedBatch


def layout(source: ExportSource) -> ExportLayout:
    line = vector_line(source.vectors.tokens)
    return ExportLayout(documents=in_parts(line), query_line=line)


def how_to_load(export: ExportFolder) -> str:
    return f"pocket load {export.path}"


@contextmanager
def open_export(export: ExportFolder, url: str, documents: EncodedBatch | None) -> "Iterator[Pocket]":
    yield Pocket(export)


class Pocket(FloatEngine):
    name = "pocket 1.0"

    def __init__(self, export: ExportFolder) -> None:
        super().__init__(export.manifest)
        self._tokens = export.tokens
        self._texts = {text["id"]: text["vector"] for text in export.document_lines()}

    def search_all(self, queries: EncodedBatch, k: int) -> Run:
        run: Run = {}
        for query_id, columns, weights in self.manifest.take(queries).rows():
            wanted = [(self._tokens[column], weight) for column, weight in zip(columns, weights, strict=True)]
            scores = {
                name: sum(weight * text[token] for token, weight in wanted if token in text)
                for name, text in self._texts.items()
            }
            best = sorted(scores.items(), key=lambda pair: -pair[1])[:k]
            run[query_id] = {name: score for name, score in best if score}
        return run
