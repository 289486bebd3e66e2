"""Every command that writes, at its smallest: what it reads, made once, and its words."""

import contextlib
import io
import sys
from pathlib import Path

import pytest

from sparse_adapt import cli
from sparse_adapt.collection.examples import (
    Candidates,
    Pair,
    Triplet,
    write_candidates,
    write_pairs,
    write_triplets,
)
from sparse_adapt.collection.readers import Document, Query, write_documents, write_judgements, write_queries
from sparse_adapt.terms.mining import Term, write_terms

SUBJECTS = [
    *("agent", "backup", "client", "company", "database", "file", "log"),
    *("office", "page", "password", "plan", "pool", "report", "saw"),
]
SHORT = "--steps 2 --batch-size 2 --checkpoint-every 1 --device cpu"

STAGES = {
    "extend": "extend --model {model} --terms {corpus}/terms.json",
    "preserve": f"preserve --model {{extended}} --corpus {{corpus}} {SHORT}",
    "warmup": f"warmup --model {{extended}} --corpus {{corpus}} {SHORT}",
    "dictionary": f"dictionary --model {{extended}} --glossary {{corpus}} --corpus {{corpus}} --labeller none {SHORT}",
    "contrast": f"contrast --model {{extended}} --pairs {{corpus}} --corpus {{corpus}} {SHORT}",
    "rank": f"rank --model {{extended}} --candidates {{corpus}} --corpus {{corpus}} {SHORT}",
    "distill": f"distill --model {{extended}} --candidates {{corpus}} --corpus {{corpus}} --labeller none {SHORT}",
    "dynamic": f"dynamic --model {{extended}} --corpus {{corpus}} {SHORT}",
    "joint": f"joint --model {{extended}} --pairs {{corpus}} --corpus {{corpus}} {SHORT}",
    "triplets": f"triplets --model {{extended}} --triplets {{corpus}}/triplets.jsonl {SHORT}",
    "labelled": f"labelled --model {{extended}} --labelled {{corpus}}/labelled.jsonl {SHORT}",
}
"""Stages, each with what it reads in braces; `-o PLACE` is added."""

OTHERS = {
    "run": "run {run}",
    "adapt": "adapt {corpus} --model {model} --teacher bm25 --stages extend,contrast --batch-size 2 "
    "--epochs 0.05 --device cpu",
    "terms": "terms {corpus} --model {model}",
    "queries": "queries {corpus} --count 12 --held 8",
    "candidates": "candidates {asked} --model {model} --teacher bm25",
    "pairs": "pairs {asked} --reference {model} --depth 14 --device cpu",
    "contradict": "contradict {corpus} --model {model} --sentences 4 --each 1 --device cpu",
    "coin": "coin --collection gatrocraptic --model {model} --terms 2",
    "encode": "encode --model {model} --corpus {corpus} --shard 5 --device cpu",
    "index": "index --vectors {vectors} --threads 1",
    "export": "export anserini --model {model} --corpus {corpus} --device cpu",
    "export-vectors": "export opensearch --model {model} --vectors {vectors} --device cpu",
    "suite": "evaluate --suite {suite} --device cpu",
    "pack": "pack {extended} --base {model} --author tests",
    "unpack": "unpack {packed} --model {model} --corpus {corpus}",
    "groups": "groups --model {model} --groups {groups} --device cpu",
    "relevant-words": "relevant-words --model {model} --pairs {graded} --least 1 --device cpu",
}
COMMANDS = {**STAGES, **OTHERS}
RESUMABLE = {
    *STAGES,
    "run",
    "adapt",
    "contradict",
    "encode",
    "export",
    "export-vectors",
    "suite",
} - {"extend"}


def ran(*words: str) -> tuple[int, str]:
    """How a command ends in this process, and what it says."""
    said = io.StringIO()
    status = 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["sparse-adapt", *words])
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            try:
                cli.main()
            except SystemExit as end:
                status = int(end.code or 0)
    return status, said.getvalue()


def document(number: int, name: str) -> Document:
    text = (
        f"The {name} keeps what the team {number} needs, and zorvex decides who signs for it. "
        f"Every {name} number {number} is tested before the month of the report ends. "
        f"A {name} without a plan sends its log to the office of the company, page {number}."
    )
    return Document(f"d{number}", text, f"The plan of a {name}")


def inputs(folder: Path, model: Path) -> dict[str, str]:
    """Whatever the commands read, in a folder: each by the word that stands for it in their lines."""
    corpus = folder / "corpus"
    documents = [document(number, name) for number, name in enumerate(SUBJECTS)]
    write_documents(corpus / "corpus.jsonl", documents)
    queries = [Query(f"q{number}", f"what a {name} keeps") for number, name in enumerate(SUBJECTS[:6])]
    write_queries(corpus / "queries.jsonl", queries)
    judged = {query.query_id: {f"d{number}": 1} for number, query in enumerate(queries)}
    write_judgements(corpus / "qrels" / "test.tsv", judged)
    write_terms(corpus / "terms.json", [Term("zorvex", "coined")])
    (corpus / "dictionary.jsonl").write_text('{"term": "zorvex", "definition": "who signs for spending"}\n')
    write_pairs(corpus / "pairs.jsonl", [Pair(q.text, f"d{n}", q.query_id) for n, q in enumerate(queries)])
    write_candidates(
        corpus / "candidates.jsonl",
        [
            Candidates(q.query_id, q.text, (f"d{n}", "d10", "d11"), (9.0, 1.0, -3.0))
            for n, q in enumerate(queries)
        ],
    )
    triplets = [Triplet(f"the {name} is new", (f"the {name} is old",)) for name in SUBJECTS[:6]]
    write_triplets(corpus / "triplets.jsonl", triplets)
    write_triplets(corpus / "labelled.jsonl", [each._replace(entailment="it is new") for each in triplets])
    (folder / "groups.jsonl").write_text(
        "".join(f'{{"group": "{name[0]}", "text": "a {name}"}}\n' for name in SUBJECTS)
    )
    (folder / "graded.tsv").write_text("".join(f"4\ta {name}\tthe {name} is new\n" for name in SUBJECTS[:4]))
    (folder / "run.toml").write_text(
        f'model = "{model}"\ncorpus = "{corpus}"\nstages = ["extend", "warmup"]\n'
        '[warmup]\nsteps = 2\nbatch_size = 2\ncheckpoint_every = 1\ndevice = "cpu"\n'
    )
    (folder / "suite.toml").write_text(
        f'[rows]\nbase = {{ model = "{model}" }}\n[collections]\nmine = {{ path = "{corpus}" }}\n'
    )
    words = {"model": model, "corpus": corpus, "run": folder / "run.toml", "suite": folder / "suite.toml"}
    words |= {"groups": folder / "groups.jsonl", "graded": folder / "graded.tsv"}
    words |= {name: folder / name for name in ("extended", "asked", "vectors")}
    words |= {"packed": folder / "zorvex.pack"}
    plain = {name: str(place) for name, place in words.items()}
    made = {"extend": "extended", "queries": "asked", "encode": "vectors", "pack": "packed"}
    for command, place in made.items():
        status, said = ran(*COMMANDS[command].format(**plain).split(), "-o", plain[place])
        assert status == 0, said
    return plain
