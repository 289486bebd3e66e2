"""Terms, pairs, the stages that learn from them and measuring, as commands, for both kinds of encoder."""

import json
from pathlib import Path

import pytest
from conftest import refused
from dense_models import tiny_dense

from sparse_adapt.collection.examples import read_pairs
from sparse_adapt.collection.readers import Document
from sparse_adapt.pipeline import estimate
from sparse_adapt.synthetic.queries import QuerySettings as Queries
from sparse_adapt.synthetic.queries import make_queries, write_collection
from sparse_adapt.terms.mining import read_terms

NAMES = ["pump", "valve", "gate", "lock", "crane", "hoist", "drill", "lathe"]
ABOUT = ["steel", "brass", "copper", "iron", "bronze", "nickel", "zinc", "lead"]


@pytest.fixture(params=["sparse", "dense"])
def model(request: pytest.FixtureRequest, tiny_model: Path, tmp_path: Path) -> Path:
    return tiny_model if request.param == "sparse" else tiny_dense(tiny_model, tmp_path / "dense")


@pytest.fixture
def collection(tmp_path: Path) -> Path:
    documents = [
        Document(
            name,
            f"The zorvex of this {name} is made of {about}. Whoever sees the {name} of {about} knows that it was "
            f"the team of the server that made a zorvex for the {name} and not for the others in the long list.",
            f"A zorvex for the {name} of {about}",
        )
        for name, about in zip(NAMES, ABOUT, strict=True)
    ]
    write_collection(tmp_path / "asked", make_queries(documents, Queries(held=2)))
    return tmp_path / "asked"


def test_from_a_collection_to_a_measured_model(sparse_adapt, model, collection, tmp_path):
    terms, pairs, extended = tmp_path / "terms.json", tmp_path / "pairs.jsonl", tmp_path / "extended"
    status, out, _ = sparse_adapt(
        "terms", collection, "--model", model, "--by", "wordpiece", "--top", 5, "-o", terms, "--json"
    )
    assert status == 0
    assert [row["term"] for row in json.loads(out)] == [term.text for term in read_terms(terms)]
    assert "zorvex" in {term.text for term in read_terms(terms)}
    status, _, said = sparse_adapt("extend", "--model", model, "--terms", terms, "-o", extended)
    assert status == 0
    assert ("preserve --help" in said) == ("dense" in model.name)
    status, _, said = sparse_adapt("pairs", collection, "--reference", model, "--depth", 99, "-o", pairs)
    assert "contrast --model" in said
    assert status == 0
    found = list(read_pairs(pairs))
    assert f"{len(found)} pairs: of {len(found)} queries those whose document" in said
    english = ["--depth", 99, "--language", "en", "-o", tmp_path / "english.jsonl"]
    status, _, said = sparse_adapt("pairs", collection, "--reference", model, *english)
    assert (status, "without 0 in another language than en" in said) == (0, True)
    kept, quick = tmp_path / "preserve", ["--corpus", collection, "--epochs", 0.5, "--device", "cpu"]
    status, _, said = sparse_adapt("preserve", "--model", extended, *quick, "-o", kept)
    assert status == 0
    assert ("evaluate --model" in said) == ("dense" in model.name)
    files = ["--pairs", pairs, *quick]
    assert sparse_adapt("joint", "--model", kept, *files, "-o", tmp_path / "joint")[0] == 0
    status, _, said = sparse_adapt("contrast", "--model", tmp_path / "joint", *files, "-o", tmp_path / "last")
    assert status == 0
    assert "infonce" in said
    measured = ["evaluate", "--collection", collection, "--split", "held", "--json", "--device", "cpu"]
    status, out, _ = sparse_adapt(*measured, "--model", tmp_path / "last", "--baseline", model)
    assert status == 0
    content = json.loads(out)
    assert 0.0 <= content["model"]["ndcg@10"] <= 1.0
    if "dense" in model.name:
        assert content["model"]["nonzero_document"] == 16


def test_a_run_file_with_pairs_ends_with_what_its_kind_of_model_can_do(
    sparse_adapt, model, collection, tmp_path, monkeypatch
):
    monkeypatch.setattr(estimate, "LONG", 0.0)
    dense, pairs = "dense" in model.name, tmp_path / "pairs.jsonl"
    assert sparse_adapt("pairs", collection, "--reference", model, "--depth", 99, "-o", pairs)[0] == 0
    (tmp_path / "run.toml").write_text(
        f'model = "{model}"\ncorpus = "asked"\nstages = ["contrast"]\n[contrast]\npairs = "pairs.jsonl"\nsteps = 2\n'
        f'hard_negatives = 2\ntoken_scales = "{"idf" if dense else "learnt"}"\nweights = {{ anchor = 100.0 }}\n'
    )
    words = [tmp_path / "run.toml", "--device", "cpu", "-o", tmp_path / "taught"]
    status, _, said = sparse_adapt("run", *words)
    assert status == 0
    assert "evaluate --model" in said
    assert ("export anserini" in said) != dense
    assert ("on this machine: " in said) != dense, "the trial of the time is for sparse models"


def test_hard_words_are_taught_alone_or_before_pairs(sparse_adapt, model, collection, tmp_path):
    terms, extended = tmp_path / "terms.json", tmp_path / "extended"
    terms.write_text('{"jargon": ["zorvex"]}')
    assert sparse_adapt("extend", "--model", model, "--terms", terms, "-o", extended)[0] == 0
    short = ["--model", extended, "--corpus", collection, "--epochs", 1, "--device", "cpu", "--batch-size", 8]
    status, _, said = sparse_adapt("dynamic", *short, "--train", "biases", "-o", tmp_path / "alone")
    assert status == 0
    assert "sentences" in said and "choosing words took" in said
    assert "evaluate --model" in said
    settings = json.loads((tmp_path / "alone" / "stage.json").read_text())["settings"]
    assert (settings["masking"], settings["train"]) == ("dynamic", "biases")
    documents = [json.loads(line)["_id"] for line in (collection / "corpus.jsonl").read_text().splitlines()]
    pairs = tmp_path / "pairs.jsonl"
    pairs.write_text(
        "".join(json.dumps({"query": f"the {name}", "doc_id": name}) + "\n" for name in documents)
    )
    both = ["dynamic", *short, "--masking", "random", "--pairs", pairs, "-o", tmp_path / "both"]
    status, _, said = sparse_adapt(*both)
    assert status == 0
    assert "choosing words" not in said
    stages = [json.loads(path.read_text()) for path in sorted((tmp_path / "both").glob("*/stage.json"))]
    assert [each["stage"] for each in stages] == ["dynamic", "contrast"]
    assert stages[0]["settings"]["masking"] == "random"
    assert stages[1]["settings"]["form"] == "nt-xent"
    assert f"evaluate --model {tmp_path / 'both' / '2-contrast'}" in said
    assert sparse_adapt(*both, "--resume")[0] == 0
    alone = [
        "contrast",
        *short,
        "--pairs",
        pairs,
        "--form",
        "nt-xent",
        "--train",
        "attention",
        "-o",
        tmp_path / "c",
    ]
    assert sparse_adapt(*alone)[0] == 0
    settings = json.loads((tmp_path / "c" / "stage.json").read_text())["settings"]
    assert (settings["form"], settings["train"]) == ("nt-xent", "attention")


def test_mistakes_with_hard_words_are_one_line_and_leave_nothing(sparse_adapt, model, collection, tmp_path):
    terms, extended, pairs = tmp_path / "terms.json", tmp_path / "extended", tmp_path / "pairs.jsonl"
    terms.write_text('{"jargon": ["quibbletron"]}')
    assert sparse_adapt("extend", "--model", model, "--terms", terms, "-o", extended)[0] == 0
    given = ["dynamic", "--corpus", collection, "-o", tmp_path / "out", "--device", "cpu", "--model"]
    assert "holds any of the 1 new terms" in refused(sparse_adapt(*given, extended))
    assert "masking should be 'dynamic' or 'random'" in refused(
        sparse_adapt(*given, extended, "--masking", "hard")
    )
    assert "train should be" in refused(sparse_adapt(*given, extended, "--train", "heads"))
    pairs.write_text('{"query": "a pump", "doc_id": "pump"}\n{"query": "a pump", "doc_id": "pump"}\n')
    assert "the pair on line 1 again" in refused(sparse_adapt(*given, extended, "--pairs", pairs))
    (tmp_path / "numbers.jsonl").write_text('{"_id": "a", "text": "12 34."}\n')
    given[2] = tmp_path / "numbers.jsonl"
    assert "holds a word to mask; check --corpus" in refused(sparse_adapt(*given, extended))
    assert "form should be 'infonce' or 'nt-xent'" in refused(
        sparse_adapt("contrast", *given[1:], extended, "--pairs", pairs, "--form", "both")
    )
    assert not list(tmp_path.glob("out*"))


def test_mistakes_are_one_line_and_leave_nothing(sparse_adapt, model, collection, tmp_path):
    pairs = tmp_path / "pairs.jsonl"
    said = refused(sparse_adapt("terms", collection, "--by", "words", "-o", tmp_path / "terms.json"))
    assert "unknown --by 'words'; there are gain, wordpiece" in said or "did you mean" in said
    said = refused(sparse_adapt("queries", collection, "--title-with", "keyword", "-o", tmp_path / "made"))
    assert "unknown --title-with 'keyword'; did you mean 'keywords'" in said
    said = refused(sparse_adapt("pairs", collection, "--reference", tmp_path / "nowhere", "-o", pairs))
    assert "no such model folder" in said
    said = refused(sparse_adapt("pairs", collection, "--reference", model, "--language", "e", "-o", pairs))
    assert "unknown language 'e'" in said
    assert not pairs.exists()
    pairs.write_text('{"query": "a pump", "doc_id": "nowhere"}\n')
    said = refused(sparse_adapt("pairs", collection, "-o", pairs))
    assert "already there" in said
    files = ["--model", model, "--pairs", pairs, "--corpus", collection, "-o", tmp_path / "out"]
    assert 'pairs.jsonl:1: no document "nowhere"' in refused(sparse_adapt("contrast", *files))
    pairs.write_text('{"query": "a pump", "doc_id": "pump"}\n')
    assert "extend it first" in refused(sparse_adapt("joint", *files))
    assert "learning_rate" in refused(sparse_adapt("joint", *files, "--learning-rate", "-1"))
    assert not list(tmp_path.glob("out*"))


def test_a_corpus_without_a_word_for_a_token_is_told_what_there_is(sparse_adapt, tmp_path):
    common, rare = tmp_path / "common.jsonl", tmp_path / "rare.jsonl"
    common.write_text('{"_id": "1", "text": "the office of the company is a page of the report"}\n')
    rare.write_text('{"_id": "1", "text": "the office of the zorvexation"}\n')
    for words in ((), ("--top", "20"), ("-o", tmp_path / "terms.json"), ("--by", "wordpiece")):
        said = refused(sparse_adapt("terms", common, *words))
        assert "no word that a token could be made of" in said and "next:" not in said
    assert "--top 20 takes the best there are" in refused(sparse_adapt("terms", rare))
    found = sparse_adapt("terms", rare, "--top", "20", "--json")
    assert [each["term"] for each in json.loads(found.out)] == ["zorvexation"]


def test_pairs_that_nobody_finds_are_none(sparse_adapt, model, collection, tmp_path):
    documents = (collection / "corpus.jsonl").read_text().splitlines()
    moved = [json.loads(line) for line in documents]
    for document in moved:
        document["_id"] = f"x{document['_id']}"
    (collection / "corpus.jsonl").write_text("".join(json.dumps(document) + "\n" for document in moved))
    said = refused(sparse_adapt("pairs", collection, "--reference", model, "-o", tmp_path / "pairs.jsonl"))
    assert "finds the document of none of" in said
    assert not (tmp_path / "pairs.jsonl").exists()


def test_adapt_takes_no_stage_that_it_cannot_feed(sparse_adapt, collection, tmp_path):
    said = refused(
        sparse_adapt("adapt", "--corpus", collection, "--stages", "triplets", "-o", tmp_path / "out")
    )
    assert "unknown --stages 'triplets'" in said
