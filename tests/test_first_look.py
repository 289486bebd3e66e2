"""The base model's view of a new term, before anything is trained."""

import shutil

from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.pipeline.demo import measure, read_scene
from sparse_adapt.pipeline.demo_report import first_look
from sparse_adapt.pipeline.plan import make_plan


def test_pieces_and_ranks_are_those_of_the_table(tiny_model, zorvex_collection):
    plan = make_plan(str(zorvex_collection), model=str(tiny_model))
    first, asked, *found, ranks = first_look(plan)
    model = SparseEncoder.load(tiny_model)
    pieces = model.tokenizer.tokenize("zorvex")
    assert first == f"{tiny_model} has no token for zorvex and reads {len(pieces)} pieces: {' '.join(pieces)}"
    scene = read_scene(str(zorvex_collection), ["zorvex"])
    assert scene.hard_queries[0].text in asked
    figures = measure(model, scene)[0]["hard_queries"]["q3"]
    listed = ", ".join(map(str, sorted(figures["ranks"].values())))
    assert ranks == f"  the 3 relevant documents have the ranks {listed}"
    top = [line.split()[1] for line in found]
    assert top[:3] == figures["top"]
    assert ["(not relevant)" not in line for line in found] == [name in figures["ranks"] for name in top]


def test_a_corpus_without_semantic_queries_shows_the_pieces_alone(tiny_model, zorvex_collection, tmp_path):
    folder = tmp_path / "mine"
    shutil.copytree(zorvex_collection, folder)
    queries = folder / "queries.jsonl"
    queries.write_text(queries.read_text().replace('"kind": "semantic"', '"kind": "control"'))
    (line,) = first_look(make_plan(str(folder), model=str(tiny_model)))
    assert "pieces" in line
