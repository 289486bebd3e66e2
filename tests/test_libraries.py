"""PyTerrier, sentence-transformers and MTEB work with an adapted model as the page of libraries says."""

import re
import shutil
from pathlib import Path

import pytest

import corpora
import sparse_adapt as sa

pytestmark = pytest.mark.slow
PAGE = (Path(__file__).parents[1] / "docs" / "libraries.md").read_text(encoding="utf-8")
TERRIER, TRAINING, EVALUATING, HEAD = re.findall(r"^```python\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
WORDS = ["gatrocraptic", "max_connections"]
TEXTS = ["gatrocraptic budgeting, and max_connections", "a plain text"]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """The real model with two more words, and the bundled collection, where the page's examples look for them."""
    folder = tmp_path_factory.mktemp("libraries")
    shutil.copytree(corpora.path("gatrocraptic"), folder / "my-collection")
    model = sa.load("splade-tiny", device="cpu")
    model.extend(WORDS)
    model.save(folder / "adapted" / "model")
    return folder


@pytest.fixture(scope="module")
def ours(place):
    """Our measures of the model on the collection."""
    return sa.evaluate(place / "adapted/model", place / "my-collection", device="cpu").measures


@pytest.fixture(scope="module")
def names(place):
    """What the page's examples leave behind, run one after the other."""
    left: dict[str, object] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        for example in (TERRIER, TRAINING, EVALUATING):
            exec(compile(example, "libraries.md", "exec"), left)
        exec(compile(HEAD, "libraries.md", "exec"), dict(left))  # whose encoder is another one
    return left


def test_pyterrier_ranks_and_measures_as_we_do(names, ours):
    from sparse_adapt.retrieve.evaluate import evaluate_run

    measured = names["measures"].iloc[0]
    assert measured["nDCG@10"] == pytest.approx(ours["ndcg@10"], abs=0.002)  # rounded to whole numbers
    assert measured["RR@10"] == pytest.approx(ours["mrr@10"], abs=0.002)
    found = names["search"].transform(names["queries"])
    run = {qid: dict(zip(each["docno"], each["score"], strict=True)) for qid, each in found.groupby("qid")}
    judged = names["judged"].groupby("qid")[["docno", "label"]]
    judgements = {qid: dict(each.itertuples(index=False)) for qid, each in judged}
    values = evaluate_run(run, judgements).values
    assert measured["nDCG@10"] == pytest.approx(values["ndcg@10"].mean(), abs=1e-6)
    assert measured["RR@10"] == pytest.approx(values["mrr@10"].mean(), abs=1e-6)


def test_the_scorer_gives_what_the_index_gave(names):
    found = names["search"].transform(names["queries"].head(5))
    texts = names["documents"][["docno", "text"]]
    again = names["rank_again"].transform(found[["qid", "query", "docno"]].merge(texts, on="docno"))
    both = found.merge(again, on=["qid", "docno"])
    assert len(both) == len(found) > 0
    assert (both["score_x"] == both["score_y"]).all()


def test_a_folder_that_was_trained_on_loads_with_the_same_vectors(names, place):
    again, before = (sa.load(place / name, device="cpu") for name in ("trained-on", "adapted/model"))
    theirs = names["encoder"].encode_document(TEXTS, convert_to_sparse_tensor=False)
    assert again.terms == WORDS
    assert abs(again.encode(TEXTS) - theirs.numpy()).max() < 1e-5
    assert abs(again.encode(TEXTS) - before.encode(TEXTS)).max() > 1e-5  # two steps move something


@pytest.mark.nightly
def test_evaluators_agree(names, ours, place, monkeypatch):
    from sentence_transformers.sparse_encoder.evaluation import SparseNanoBEIREvaluator

    assert names["found"]["dot_mrr@10"] == pytest.approx(ours["mrr@10"], abs=1e-6)
    nano = place / "nano"
    nano.mkdir()
    kinds = {"corpus": names["documents"].rename(columns={"docno": "_id"}).drop(columns="title")}
    kinds["queries"] = names["queries"].rename(columns={"qid": "_id", "query": "text"})[["_id", "text"]]
    kinds["qrels"] = names["judged"].rename(columns={"qid": "query-id", "docno": "corpus-id"})
    head = ["---", "configs:"]
    for kind, frame in kinds.items():
        frame.to_json(nano / f"{kind}.jsonl", orient="records", lines=True)
        head += [
            f"- config_name: {kind}",
            "  data_files:",
            "  - split: NanoMSMARCO",
            f"    path: {kind}.jsonl",
        ]
    (nano / "README.md").write_text("\n".join([*head, "---", ""]))
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", str(place / "cache"))
    evaluator = SparseNanoBEIREvaluator(dataset_names=["msmarco"], dataset_id=str(nano))
    found = evaluator(names["SparseEncoder"](str(place / "adapted/model"), device="cpu"))
    assert found["NanoBEIR_mean_dot_mrr@10"] == pytest.approx(ours["mrr@10"], abs=1e-6)


@pytest.mark.nightly
def test_mteb_measures_as_we_do(names, ours, place):
    import mteb
    from datasets import Dataset
    from mteb.abstasks.retrieval import AbsTaskRetrieval
    from mteb.models.sentence_transformer_wrapper import SparseEncoderWrapper

    judged = names["judged"].groupby("qid")[["docno", "label"]]
    asked = names["queries"][names["queries"]["qid"].isin(names["judged"]["qid"])]
    task = {
        "corpus": Dataset.from_dict({"id": names["documents"]["docno"], "text": names["documents"]["text"]}),
        "queries": Dataset.from_dict({"id": asked["qid"], "text": asked["query"]}),
        "relevant_docs": {qid: dict(each.itertuples(index=False)) for qid, each in judged},
        "top_ranked": None,
    }

    class Ours(AbsTaskRetrieval):
        metadata = mteb.TaskMetadata(
            **{"name": "Ours", "description": "ours", "type": "Retrieval", "main_score": "ndcg_at_10"},
            **{
                "eval_splits": ["test"],
                "eval_langs": ["eng-Latn"],
                "dataset": {"path": "o/o", "revision": "1"},
            },
        )

        def load_data(self, **_):
            self.dataset, self.data_loaded = {"default": {"test": task}}, True

    model = SparseEncoderWrapper(str(place / "adapted/model"), device="cpu")
    (found,) = mteb.evaluate(model, Ours(), cache=None)
    assert found.scores["test"][0]["ndcg_at_10"] == pytest.approx(ours["ndcg@10"], abs=1e-4)
