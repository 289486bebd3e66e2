"""Odd, hostile and damaged files, of every kind that a command reads: each is read, or refused in one line.

The odd and hostile ones (`odd_files`) have their right values, and every reader and every command reads all of them.
Of ten thousand damaged ones the suite looks at five hundred, `make nightly` at all. None may take much longer than the
sound file, nor much more memory.
"""

import json
import random
import re
import resource
import shutil
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch
from commands import COMMANDS, inputs, ran
from dense_models import tiny_dense
from fuzzing import damaged
from odd_files import HOSTILE, ODD_FILES, READERS, OddFile, rows_of
from office import frame, pdf, workbook

import sparse_adapt as sa
from sparse_adapt.api.checking import verify
from sparse_adapt.cli.app import every_command
from sparse_adapt.collection.examples import read_candidates, read_pairs, read_triplets
from sparse_adapt.collection.glossary import read_dictionary
from sparse_adapt.collection.readers import (
    read_documents,
    read_judgements,
    read_queries,
    read_run,
)
from sparse_adapt.errors import SparseAdaptError
from sparse_adapt.files.cache import cached_vectors
from sparse_adapt.files.journal import noted
from sparse_adapt.files.marker import checksum_of_file
from sparse_adapt.files.place import Place
from sparse_adapt.files.records import read_record
from sparse_adapt.model.kinds import load_encoder
from sparse_adapt.model.query_side import read_weights
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.pipeline.choice import ChoiceMade, Retention
from sparse_adapt.pipeline.plan import make_plan
from sparse_adapt.pipeline.request import REQUEST_FILE, Request, begun
from sparse_adapt.pipeline.run import latest_run, read_finished, run
from sparse_adapt.pipeline.runfile import read_plan
from sparse_adapt.pipeline.words import WordOptions, add_exact_words
from sparse_adapt.pipeline.work import same_request
from sparse_adapt.plugins.engines.manifest import json_lines, read_export
from sparse_adapt.plugins.engines.milvus import read_part as milvus_rows
from sparse_adapt.plugins.packs.pack import read_pack
from sparse_adapt.plugins.packs.putting import open_model
from sparse_adapt.plugins.research.contradicting.contradict import read_written
from sparse_adapt.plugins.research.groups import read_members
from sparse_adapt.plugins.research.similarity import read_graded
from sparse_adapt.plugins.research.suite.measure import training_of
from sparse_adapt.plugins.research.suite.settings import read_suite
from sparse_adapt.report.printable import CONTROL_OR_BREAK, printable_line
from sparse_adapt.retrieve.vectors.folder import join_blocks, open_vectors, read_shards
from sparse_adapt.retrieve.vectors.shards import encode_corpus
from sparse_adapt.stages.record import extended_from, read_before
from sparse_adapt.stages.record import read_stage_record as read_stage
from sparse_adapt.synthetic.queries import read_synthetic_queries
from sparse_adapt.teachers.teacher import is_cross_encoder
from sparse_adapt.terms.mining import read_terms
from sparse_adapt.training.loop import read_history

Read = Callable[[Path], object]  # a file of the seeds
SUITE_CASES, NIGHTLY_CASES = 500, 10_000
SECONDS = 2.0  # of the processor, beyond what the sound file takes
MEMORY = 1 << 28  # bytes by which a file may raise what the process has ever held


def all_of(reader: Callable[..., Iterable[object]]) -> Read:
    return lambda path: list(reader(path))


def _all_of(folder: Path) -> object:
    return join_blocks(read_shards(folder))


def of_folder(reader: Callable[..., object]) -> Read:
    return lambda path: reader(path.parent)


TEXTS: dict[str, tuple[str, Read]] = {  # what people write: content, and who reads it
    "corpus.jsonl": (
        '{"_id": "1", "title": "T", "text": "a"}\n{"_id": "2", "text": "b <p>c</p>"}\n',
        all_of(read_documents),
    ),
    "corpus.tsv": ("id\ttitle\ttext\n1\tT\ta\n2\t\tb\n", all_of(read_documents)),
    "corpus.csv": ('id,title,text\n1,T,"a, b"\n2,,b\n', all_of(read_documents)),
    "corpus.trec": (
        "<DOC><DOCNO>1</DOCNO><TITLE>T</TITLE>\n<TEXT>a &amp; b</TEXT></DOC>\n",
        all_of(read_documents),
    ),
    "loose/a.md": ("# Title\n\ntext\n", lambda path: list(read_documents(path.parent))),
    "loose/b.html": (
        "<html><title>T</title><body><p>a</p></body></html>",
        lambda path: list(read_documents(path.parent)),
    ),
    "queries.jsonl": ('{"_id": "1", "text": "a", "kind": "semantic", "doc_id": "1"}\n', all_of(read_queries)),
    "queries.tsv": ("1\twhat\n2\twho\n", all_of(read_queries)),
    "questions.json": ('["a", {"id": 3, "text": "b"}]', all_of(read_queries)),
    "questions.txt": ("what\nwho\n", all_of(read_queries)),
    "topics.xml": (
        '<topics><topic number="1"><title><![CDATA[a]]></title></topic></topics>',
        all_of(read_queries),
    ),
    "topics.trec": ("<top>\n<num> Number: 1\n<title> a p<0.05\n<desc> b\n</top>\n", all_of(read_queries)),
    "qrels.tsv": ("query-id\tcorpus-id\tscore\n1\t1\t2\n", read_judgements),
    "qrels.txt": ("1 0 d1 2\n1 0 d2 0\n", read_judgements),
    "candidates.jsonl": (
        '{"query_id": "1", "query": "a", "doc_ids": ["1", "2"], "teacher_scores": [1.5, -2]}\n',
        all_of(read_candidates),
    ),
    "results.run": ("1 Q0 d1 1 2.5 x\n1 Q0 d2 2 1.5 x\n", read_run),
    "pairs.jsonl": ('{"query": "a", "doc_id": "1"}\n', all_of(read_pairs)),
    "triplets.jsonl": ('{"anchor": "a b", "entailment": "b", "contradiction": "c"}\n', all_of(read_triplets)),
    "dictionary.jsonl": ('{"term": "a", "definition": "b", "examples": ["c"]}\n', read_dictionary),
    "glossary.csv": ("term,definition,examples\na,b,c;d\n", read_dictionary),
    "glossary.tsv": ("a\tb\n", read_dictionary),
    "glossary.obo": ('[Term]\nid: X:1\nname: a\ndef: "b" []\nsynonym: "c" EXACT []\n', read_dictionary),
    "glossary.tbx": (
        '<tbx><termEntry><langSet xml:lang="en"><tig><term>a</term></tig><descrip type="definition">b</descrip>'
        "</langSet></termEntry></tbx>",
        read_dictionary,
    ),
    "terms.json": (
        '{"jargon": ["zorvex"], "evidence": {"zorvex": {"gain": 1.5, "pieces": ["z"], "occurrences": 1, '
        '"documents": 1, "zipf": 0.0, "log_odds": 2.5, "variants": []}}}',
        read_terms,
    ),
    "groups.jsonl": (
        '{"group": "a", "text": "b", "seen": true}\n{"group": "a", "text": "c"}\n{"group": "b", "text": "d"}\n',
        read_members,
    ),
    "graded.tsv": ("1.5\ta\tb\n2\tc\td\n3\te\tf\n", read_graded),
    "weights.json": ('{"a": 1.5, "b": 2}', read_weights),
    "suite.toml": (
        '[rows]\nbase = { model = "splade-tiny" }\n[collections]\nmine = { path = "gatrocraptic" }\n',
        read_suite,
    ),
    "run.toml": (
        'model = "splade-tiny"\ncorpus = "gatrocraptic"\nstages = ["extend", "warmup"]\n',
        read_plan,
    ),
    "pseudo/queries.jsonl": (
        '{"_id": "1", "text": "a", "kind": "x", "doc_id": "2"}\n',
        of_folder(read_synthetic_queries),
    ),
}


KINDS = {
    "baseline": {"ndcg@10": 0.5},
    "model": {"ndcg@10": 0.5, "false_activations": 0.0},
    "difference": {"ndcg@10": 0.0},
}
OF_RUNS: dict[str, tuple[object, Read]] = {  # what a run leaves besides, and who reads it
    "choice.json": (
        {
            "measure": "ndcg@10",
            "queries": 9,
            "kept": 0,
            "tried": [{"name": "base", "back": None, "ndcg@10": 0.5}],
        },
        lambda path: read_record(path, ChoiceMade, "remove it"),
    ),
    "retention.json": ({"general": KINDS}, lambda path: read_record(path, Retention, "remove it")),
    "sentences.jsonl": (
        {"anchor": "a b", "contradictions": ["a c"], "replaced": ["b"], "unchanged": 0, "duplicates": 1},
        read_written,
    ),
    "part-00000.json": ([{"document_id": "d1", "weights": {"3": 1.5, "7": 0.25}}], milvus_rows),
}


def model_at(depth: int = 1) -> Read:
    def load(path: Path) -> object:
        folder = path.parents[depth - 1]
        return load_encoder(folder)

    return load


def with_sums(reader: Callable[[Path], object]) -> Read:
    """A reader of a folder whose manifest vouches for what lies there now, damage and all."""

    def read(path: Path) -> object:
        manifest = path.parent / "manifest.json"
        content = manifest.read_bytes()
        try:
            facts = json.loads(content)
            for shard in facts["shards"]:
                if path.stem == shard["name"]:
                    shard["sha256" if path.suffix == ".safetensors" else "ids_sha256"] = checksum_of_file(
                        path
                    )
            manifest.write_text(json.dumps(facts))
            return reader(path.parent)
        finally:
            manifest.write_bytes(content)

    return read


@pytest.fixture(scope="module")
def seeds(tmp_path_factory, tiny_model, zorvex_collection, twelve_documents) -> dict[Path, list[Read]]:
    """Each file that something reads, sound, and its readers."""
    torch.set_num_threads(1)
    folder = tmp_path_factory.mktemp("seeds")
    readers: dict[Path, list[Read]] = {}
    for name, (content, read) in TEXTS.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(content)
        readers[path] = [read]
    short = {"steps": 1, "batch_size": 2, "device": "cpu", "labeller": "none"}
    plan = make_plan(
        str(zorvex_collection), model=str(tiny_model), stages=["extend", "warmup"], overrides=short
    )
    run(plan, Place(folder / "runs" / "run"))
    readers[folder / "runs" / "run" / "report.json"] = [
        of_folder(read_finished),
        lambda path: latest_run(path.parents[1]),
    ]
    readers[folder / "runs" / "run" / "run.toml"] = [read_plan]
    readers[folder / "runs" / "run" / "sparse-adapt.json"] = [of_folder(verify)]
    stage = folder / "runs" / "run" / "2-warmup"
    readers[stage / "stage.json"] = [
        lambda path: (
            read_stage(path.parent),
            read_before(str(path.parent)),
            extended_from(str(path.parent)),
            training_of(str(path.parent)),
        )
    ]
    readers[stage / "history.jsonl"] = [read_history]
    model = folder / "model"
    shutil.copytree(stage, model, ignore=shutil.ignore_patterns("sparse-adapt.json"))
    encoder = SparseEncoder.load(model)
    add_exact_words(encoder, lambda: twelve_documents, WordOptions())
    encoder.save(model)
    (model / "sparse-adapt.json").unlink()
    (model / "token_scales.json").write_text(json.dumps({"token_scales": [1.0] * 10}))
    for path in [*sorted(model.rglob("*.json")), model / "model.safetensors"]:
        readers[path] = [model_at(len(path.relative_to(model).parts))]
    readers[model / "config.json"].append(lambda path: is_cross_encoder(str(path.parent)))
    dense = tiny_dense(tiny_model, folder / "dense")
    for path in sorted(dense.rglob("*.json")) + sorted(dense.rglob("*.safetensors")):
        readers[path] = [model_at(len(path.relative_to(dense).parts))]
    sa.pack(stage.with_name("1-extend"), folder / "zorvex.pack", base=tiny_model)
    readers[folder / "zorvex.pack"] = [read_pack]
    packed = sa.unpack(folder / "zorvex.pack", tiny_model, folder / "packed").folder
    (packed / "sparse-adapt.json").unlink()
    for path in sorted((packed / "packs").iterdir()):
        readers[path] = [lambda path: open_model(path.parents[1])]
    vectors = folder / "vectors"
    encode_corpus(
        SparseEncoder.load(tiny_model), twelve_documents, Place(vectors, resume=True), documents_a_shard=5
    )
    for path in sorted(vectors.iterdir()):
        readers[path] = [of_folder(_all_of), with_sums(_all_of)]
    readers[vectors / "manifest.json"] = [of_folder(open_vectors), of_folder(_all_of)]
    readers[vectors / "sparse-adapt.json"] = [of_folder(verify)]
    export = folder / "export"
    sa.export("anserini", str(tiny_model), zorvex_collection, export, device="cpu")
    for name in ("manifest.json", "tokens.json"):
        readers[export / name] = [of_folder(read_export)]
    readers[vectors / "shard-00000.safetensors"].append(cached_vectors)
    readers[vectors / "shard-00000.jsonl"].append(noted)
    part = next((export / "documents").iterdir())
    readers[part] = [all_of(json_lines)]
    table = [["_id", "text", "title"], ["1", "a", "T"], ["2", "b", "T"]]
    for write, name in ((workbook, "corpus.xlsx"), (frame, "corpus.parquet")):
        readers[write(folder / name, table)] = [all_of(read_documents)]
    glossary = [["term", "definition"], ["a", "b"]]
    readers[workbook(folder / "glossary.xlsx", glossary)] = [read_dictionary]
    printed = folder / "printed" / "a.pdf"
    printed.parent.mkdir()
    printed.write_bytes(pdf("a text", "of two lines"))
    readers[printed] = [lambda path: list(read_documents(path.parent))]
    for name, (content, read) in OF_RUNS.items():
        (folder / name).write_text(json.dumps(content) + "\n")
        readers[folder / name] = [read]
    request = folder / "adapted" / REQUEST_FILE
    request.parent.mkdir()
    asked = Request(corpus=str(zorvex_collection), model=str(tiny_model))
    same_request(request, asked)
    readers[request] = [of_folder(begun), lambda path: same_request(path, asked)]
    return readers


class Unbounded(Exception):
    """A file took too much time or memory."""


@contextmanager
def bounded(seconds: float = 0.0) -> Iterator[None]:
    """Raise Unbounded where what is done takes over SECONDS more than so many, or over MEMORY more than ever before."""
    before, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    try:
        yield
    finally:
        took = time.process_time() - start - seconds
        held = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) << 10
        if took > SECONDS or held > MEMORY:
            raise Unbounded(f"took {took:.1f} s more than the sound file, and {held >> 20:,} MiB")


def seconds_of(read: Read, path: Path) -> float:
    """How long a sound file takes."""
    start = time.process_time()
    read(path)
    return time.process_time() - start


def cases(seeds: dict[Path, list[Read]], number: int, seed: int) -> Counter[str]:
    """Damage so many files and read each; how many were read and refused. Fails with every traceback there is."""
    chance = random.Random(seed)
    paths = sorted(seeds)
    outcomes: Counter[str] = Counter()
    bugs: dict[str, str] = {}
    sound_seconds: dict[Read, float] = {}
    for case in range(number):
        path = paths[case % len(paths)] if case < len(paths) else chance.choice(paths)
        read = chance.choice(seeds[path])
        if read not in sound_seconds:
            sound_seconds[read] = seconds_of(read, path)
        sound = path.read_bytes()
        content = damaged(chance, sound)
        path.write_bytes(content)
        try:
            with bounded(sound_seconds[read]):
                read(path)
            outcomes["read"] += 1
        except SparseAdaptError as error:
            outcomes["refused"] += 1
            assert CONTROL_OR_BREAK.search(printable_line(" ".join(str(error).splitlines()))) is None
        except Exception as error:
            outcomes["traceback"] += 1
            where = traceback.extract_tb(error.__traceback__)
            own = [
                frame
                for frame in where
                if "sparse_adapt" in frame.filename or "diagnostics" in frame.filename
            ]
            place = (
                f"{path.parent.name}/{path.name}: {own[-1].filename}:{own[-1].lineno}" if own else str(path)
            )
            bugs.setdefault(f"{place}: {type(error).__name__}: {str(error)[:150]!r}", repr(content[:200]))
        finally:
            path.write_bytes(sound)
    assert not bugs, "\n".join(f"{place}\n    {content}" for place, content in bugs.items())
    return outcomes


def test_what_is_damaged_is_sound_before(seeds):
    for path, readers in seeds.items():
        for read in readers:
            read(path)


def test_damaged_files_are_read_or_refused_in_one_line(seeds):
    outcomes = cases(seeds, SUITE_CASES, seed=1)
    assert outcomes["refused"] > SUITE_CASES / 3 and outcomes["read"] > SUITE_CASES / 10


@pytest.mark.nightly
def test_ten_thousand_damaged_files_are_read_or_refused_in_one_line(seeds):
    print(dict(cases(seeds, NIGHTLY_CASES, seed=2)))  # noqa: T201 - counted for the record


# -- odd and hostile files ------------------------------------------------------------------------


@pytest.mark.parametrize("odd", ODD_FILES, ids=lambda odd: odd.name)
def test_an_odd_file_holds_its_right_value(tmp_path, odd: OddFile):
    path = odd.put(tmp_path)
    with bounded():
        if isinstance(odd.right, list):
            assert rows_of(odd.kind, READERS[odd.kind](path)) == odd.right
            return
        with pytest.raises(SparseAdaptError) as caught:
            READERS[odd.kind](path)
    said = str(caught.value)
    assert said.startswith(str(path)) and "\n" not in said and re.search(odd.right, said), said


@pytest.mark.parametrize("kind", READERS)
def test_every_reader_reads_or_refuses_every_odd_file(tmp_path, kind):
    for odd in ODD_FILES:
        path = odd.put(tmp_path)
        try:
            with bounded():
                READERS[kind](path)
        except SparseAdaptError as error:
            assert "\n" not in str(error), odd.name


OF_FILES = re.compile(r"FILE|CORPUS|DIR|MODEL|PATH|RUN|INDEX|COLLECTION")  # in the name of an option's value
WRITTEN = {"--out", "--html", "--saves", "--per-query", "--llm", "--run", "--define"}  # or asked
ALSO = {
    "explain": ("query",),
    "search": ("query",),
    "diagnose": ("term",),
    "unpack": ("files",),
    "adapt": ("--out",),
    "evaluate": ("--model", "--collection"),
    "export": ("--corpus",),
    "check-export": ("--corpus",),
    "calibrate": ("--out", "--target-activations"),
    "report": ("run", "--out"),
    "explore": ("run", "--saves"),
    "push": ("repository",),
}  # what a command needs beside its required options
INSTEAD = {
    ("--queries", "query"),
    ("--vectors", "--corpus"),
    ("--suite", "--model"),
    ("--suite", "--collection"),
}
BEFORE = 3.0  # seconds that a command may take for what it reads before
TAKING = [
    (name, parameter.opts[-1])
    for commands in every_command().values()
    for name, command in commands.items()
    for parameter in command.params
    if OF_FILES.search(parameter.metavar or "")
    and parameter.opts[-1] not in WRITTEN
    and (name, parameter.opts[-1]) != ("coin", "--glossary")  # whose collection has to be large
]


@pytest.fixture(scope="module")
def words(tmp_path_factory, tiny_model, tiny_run) -> dict[str, str]:
    """Good values of options, by their names."""
    folder = tmp_path_factory.mktemp("commands")
    made = inputs(folder, tiny_model)
    assert ran(*COMMANDS["coin"].format(**made).split(), "-o", str(folder / "coined"))[0] == 0
    corpus, export = made["corpus"], folder / "export"
    sa.export("opensearch", str(tiny_model), corpus, export, device="cpu", progress=False)
    models = {name: made["model"] for name in ("--model", "model", "--base", "--baseline")}
    graded = {f"{name} --pairs": made["graded"] for name in ("similarity", "relevant-words")}
    return {
        **models,
        **graded,
        **dict.fromkeys(("pack model", "calibrate --model"), made["extended"]),
        "--encoder": str(tiny_dense(tiny_model, folder / "dense")),
        "--groups": made["groups"],
        "--coined": str(folder / "coined"),
        "run": str(tiny_run),
        "run file": made["run"],
        "repository": "somebody/zorvex",
        "--vectors": made["vectors"],
        "--target-activations": "5%",
        **{f"--{name}": f"{corpus}/{name}.jsonl" for name in ("triplets", "labelled")},
        "--terms": f"{corpus}/terms.json",
        "check-export folder": str(export),
        "files": made["packed"],
        "source": made["packed"],
        "format": "opensearch",
        **dict.fromkeys(("term", "query"), "zorvex"),
        "": corpus,
    }


def a_command(name: str, flag: str, hostile: str, words: dict[str, str], out: str) -> list[str]:
    """A command whose option or place gets the hostile file, and whatever else it needs a good one."""
    places, named = list[str](), list[str]()
    for parameter in next(each[name] for each in every_command().values() if name in each).params:
        option = parameter.opts[-1]
        needed = parameter.required or option in ALSO.get(name, ()) or option == "--model"
        if option != flag and (not needed or (flag, option) in INSTEAD):
            continue
        good = out if option == "--out" else words.get(f"{name} {option}", words.get(option, words[""]))
        value = hostile if option == flag else good
        if option.startswith("-"):
            named += [option, value]
        else:
            places.append(value)
    return [name, *places, *named]


def refuse(name: str, flag: str, hostile: Iterable[OddFile], words: dict[str, str], tmp_path: Path) -> None:
    """Have a command read hostile files, each of which it refuses in one line that names it."""
    for odd in hostile:
        path, out = odd.put(tmp_path), tmp_path / f"from {odd.name}"
        with bounded(BEFORE):
            status, said = ran(*a_command(name, flag, str(path), words, str(out)))
        last = [line for line in said.splitlines() if line.startswith("error: ")]
        assert status == 2 and len(last) == 1 and odd.name in last[0], (name, flag, odd.name, said[-500:])
        assert not out.exists()


@pytest.mark.parametrize(("name", "flag"), TAKING, ids=map(" ".join, TAKING))
def test_every_command_refuses_a_hostile_file(name, flag, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    place = TAKING.index((name, flag))
    refuse(name, flag, [HOSTILE[(place * 7 + step) % len(HOSTILE)] for step in (0, 3)], words, tmp_path)


@pytest.mark.nightly
def test_every_command_refuses_every_hostile_file(words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, flag in TAKING:
        refuse(name, flag, HOSTILE, words, tmp_path)
