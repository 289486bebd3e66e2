"""The command for queries without a model: a weight for each token, and what that costs."""

from pathlib import Path
from typing import Annotated

import typer

from sparse_adapt.cli.console import say, show_json, show_table, wrote
from sparse_adapt.cli.exports import Queries, SomeCorpus, SomeVectors, read_vectors_of
from sparse_adapt.cli.options import Device, Json, Model
from sparse_adapt.errors import ConfigError


def query_table(
    model: Model,
    out: Annotated[Path, typer.Option("-o", "--out", metavar="FILE", help="JSON file to write.")],
    corpus: SomeCorpus = None,
    vectors: SomeVectors = None,
    learn: Annotated[
        str | None,
        typer.Option(
            "--learn", metavar="FILE", help="Queries, made up or not, to fit the weights to the model's."
        ),
    ] = None,
    queries: Queries = None,
    qrels: Annotated[
        str | None, typer.Option("--qrels", metavar="FILE", help="Judgements: says what the table costs.")
    ] = None,
    split: Annotated[str, typer.Option("--split", help="Judgements: qrels/SPLIT.tsv.")] = "test",
    device: Device = "auto",
    json: Json = False,
) -> None:
    """Write a weight for each token, so that queries are tokenised and looked up, and no model is asked.

    The weights are inverse document frequencies over the documents' vectors, or learnt from queries (--learn).
    With --queries and --qrels it says what such queries cost beside the model's own.
    """
    from sparse_adapt.cli.devices import load
    from sparse_adapt.cli.progress import Bars
    from sparse_adapt.corpus import read_judgements, read_queries
    from sparse_adapt.encode import encode
    from sparse_adapt.evaluate import evaluate_run
    from sparse_adapt.export.query_table import idf_weights, learn_weights, token_queries, weigh, write_table
    from sparse_adapt.report import Column, Row, Table
    from sparse_adapt.search import search
    from sparse_adapt.vectors import join_blocks
    from sparse_adapt.vectors.manifest import token_names

    if (queries is None) != (qrels is None):
        raise ConfigError("what the table costs needs both --queries and --qrels")
    lessons = [query.text for query in read_queries(learn)] if learn is not None else []
    asked = list(read_queries(queries)) if queries is not None else []
    judgements = read_judgements(qrels, split) if qrels is not None else {}
    encoder = load(model, device)
    with Bars() as bars:
        documents = join_blocks(read_vectors_of(encoder, model, corpus, vectors, bars).blocks)
        tables = {"idf": idf_weights([documents], encoder.vocabulary_size)}
        if lessons:
            own = encode(encoder, lessons, progress=bars.count("queries", len(lessons)))
            tables["learnt"] = learn_weights(
                tables["idf"], token_queries(encoder, lessons), own, documents.vectors
            )
    weights = list(tables.values())[-1]
    count = write_table(out, token_names(encoder), weights)
    if asked:
        ids, texts = [query.query_id for query in asked], [query.text for query in asked]
        judged = {query_id: each for query_id, each in judgements.items() if query_id in set(ids)}
        tokens = token_queries(encoder, texts)
        kinds = {"model": encode(encoder, texts)}
        kinds |= {name: weigh(tokens, each) for name, each in tables.items()}
        rows: list[Row] = []
        for name, put in kinds.items():
            run = search(put, ids, documents.vectors, documents.ids, 100)
            rows.append({"queries": name, **evaluate_run(run, judged).means})
        columns = (
            Column("queries", "queries by", "text"),
            Column("ndcg@10", "nDCG@10", decimals=4),
            Column("recall@100", "recall@100", decimals=4),
        )
        table = Table("", columns, rows)
        if json:
            show_json({"file": str(out), "tokens": count, "measures": [dict(row) for row in rows]})
        else:
            show_table(table)
    elif json:
        show_json({"file": str(out), "tokens": count})
    wrote(out, f"{count:,} tokens, {'learnt' if lessons else 'inverse document frequencies'}")
    say("next:")
    say("  from sentence_transformers.sparse_encoder.modules import SparseStaticEmbedding")
    say(
        f"  SparseStaticEmbedding.from_json({str(out)!r}, tokenizer=TOKENIZER)  # or OpenSearch's doc-only mode"
    )
