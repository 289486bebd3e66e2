"""Every command makes what it made before: the same bytes from the same seed.

A case is one command line. It goes through `sparse-adapt` as a user's does, with the tiny models, and knows no
module of the package, so that a renaming can't break it. Recorded are all files that the command leaves, and what
`--json` prints; not recorded is what says when, where and by which versions.

On the machine of the record, with OMP_NUM_THREADS as it was, each file must have the SHA-256 of the record. Other
processors add in another order: there the numbers may differ a little (`recording.py` says how little), and texts
without numbers not at all.
`pytest tests/plugins/test_same_bytes.py --update-golden` records anew the cases that run, which ends the proof for
them: a commit that does it says why their bytes changed.
"""

import json
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from conftest import Ran
from dense_models import tiny_dense
from recording import difference, machine, on_disk, record

RECORD = Path(__file__).parents[1] / "golden" / "same_bytes" / "record.json"

# {out}: where the case writes, a folder, or a file if a suffix follows; {NAME}: what the case of that name wrote.
# The rest are INPUTS. {short} and {shorter} are training options; a case has three steps or a few more.
CASES = {
    # what stages learn from
    "check": "check {zorvex} --json",
    "terms": "terms {zorvex} --model {tiny} --top 5 --json -o {out}.json",
    "terms-paying": "terms {mubrithal} --model {tiny} --json -o {out}.json",
    "terms-wordpiece": "terms {zorvex} --model {tiny} --by wordpiece --top 5 --json -o {out}.json",
    "queries": "queries {mubrithal} --count 12 --held 4 --seed 1 -o {out}",
    "candidates": "candidates {queries} --model {tiny} --teacher bm25 --seed 1 -o {out}.jsonl",
    "candidates-dense": "candidates {queries} --model {tiny} --teacher {dense} --seed 1 -o {out}.jsonl",
    "pairs": "pairs {queries} --reference {tiny} --depth 20 -o {out}.jsonl",
    # stages, of a sparse model
    "extend": "extend --model {tiny} --terms {zorvex} -o {out}",
    "extend-many": "extend --model {tiny} --terms {terms-paying}.json -o {out}",
    "preserve": "preserve --model {extend} --corpus {zorvex} {short} -o {out}",
    "warmup": "warmup --model {extend} --corpus {zorvex} {short} -o {out}",
    "warmup-published": "warmup --model {extend} --corpus {zorvex} --preset published {short} -o {out}",
    "dictionary": "dictionary --model {warmup} --glossary {zorvex} --labeller {dense} {long} -o {out}",
    "dictionary-unlabelled": "dictionary --model {warmup} --glossary {zorvex} --labeller none {long} -o {out}",
    "dictionary-published": "dictionary --model {warmup} --glossary {zorvex} --preset published {long} -o {out}",
    "dynamic": "dynamic --model {extend} --corpus {zorvex} {short} -o {out}",
    "dynamic-biases": "dynamic --model {extend} --corpus {zorvex} --masking random --train biases {short} -o {out}",
    "dynamic-contrast": "dynamic --model {extend} --corpus {zorvex} --pairs {pairs-file} {short} -o {out}",
    "joint": "joint --model {extend} --corpus {zorvex} --pairs {pairs-file} {long} -o {out}",
    "contrast": "contrast --model {joint} --corpus {zorvex} --pairs {pairs-file} {long} -o {out}",
    "contrast-nt-xent": "contrast --model {tiny} --corpus {zorvex} --pairs {pairs-file} --form nt-xent {long} -o {out}",
    "triplets": "triplets --model {tiny} --triplets {triplets-file} {long} -o {out}",
    "labelled": "labelled --model {tiny} --labelled {labelled-file} {long} -o {out}",
    "distill": "distill --model {extend} --candidates {zorvex} --corpus {zorvex} --labeller {dense} {long} -o {out}",
    "distill-unlabelled": "distill --model {extend} --candidates {zorvex} --corpus {zorvex} --labeller none {long} "
    "-o {out}",
    "distill-published": "published --model {extend} --candidates {zorvex} --corpus {zorvex} {long} -o {out}",
    "distill-corpus": "rank --model {extend} --candidates {zorvex} --corpus {zorvex} {long} -o {out}",
    # stages, of a dense one
    "dense-extend": "extend --model {dense} --terms {zorvex} -o {out}",
    "dense-preserve": "preserve --model {dense-extend} --corpus {zorvex} {short} -o {out}",
    "dense-joint": "joint --model {dense-extend} --corpus {zorvex} --pairs {pairs-file} {long} -o {out}",
    "dense-contrast": "contrast --model {dense-extend} --corpus {zorvex} --pairs {pairs-file} {long} -o {out}",
    "dense-distill": "rank --model {dense-extend} --candidates {zorvex} --corpus {zorvex} {long} -o {out}",
    # many stages
    "run": "run {all-stages-file} -o {out}",
    "run-odd": "run {odd-settings-file} -o {out}",
    "run-dense": "run {dense-file} -o {out}",
    "demo": "demo --corpus {zorvex} --model {tiny} --preset published {short} --alone --json -o {out}",
    "adapt": "adapt --corpus {mubrithal} --model {tiny} --teacher bm25 "
    "--stages extend,preserve,rank {shorter} --json -o {out}",
    "adapt-pairs": "adapt --corpus {mubrithal} --model {tiny} --teacher bm25 "
    "--stages extend,warmup,dynamic,joint,contrast --only-new {shorter} --json -o {out}",
    # what a model makes of texts
    "explain": "explain 'the plan of a team' --model {warmup} --corpus {zorvex} --json",
    "diagnose": "diagnose zorvex --model {warmup} --corpus {zorvex} --json",
    "search": "search 'a log of the server' --model {warmup} --corpus {zorvex} --json",
    "evaluate": "evaluate --model {warmup} --collection {zorvex} --baseline {tiny} --json",
    "encode": "encode --model {warmup} --corpus {zorvex} --shard 5 -o {out}",
    # where it goes
    "anserini": "export anserini --model {warmup} --corpus {zorvex} --queries {zorvex} -o {out}",
    "ciff": "export ciff --vectors {encode} -o {out}",
    "opensearch": "export opensearch --vectors {encode} -o {out}",
    "elasticsearch": "export elasticsearch --vectors {encode} -o {out}",
    "qdrant": "export qdrant --vectors {encode} -o {out}",
    "milvus": "export milvus --vectors {encode} -o {out}",
    "vespa": "export vespa --vectors {encode} -o {out}",
    "seismic": "export seismic --vectors {encode} --queries {zorvex} --model {warmup} -o {out}",
    "onnx": "export onnx --model {warmup} -o {out}",
    "opensearch-model": "export opensearch-model --model {warmup} -o {out}",
}
SLOW = {"evaluate", "adapt", "adapt-pairs", "onnx"}  # a compiler works for ten seconds and more
# An untrained encoder judges: which of many synthetic texts it takes hangs on the last bit of a cosine. So numbers of
# these cases mean something on the machine of the record only.
JUDGED = {"dictionary", "distill", "run"}

TRAINING = "--batch-size 4 --device cpu --seed 3"
OPTIONS = {
    "{shorter}": f"--epochs 0.5 {TRAINING}",
    "{short}": f"--epochs 1 {TRAINING}",
    "{long}": f"--epochs 3 {TRAINING}",
}
PAIRS = {
    "who refuses the client": "d02",
    "zorvex reports month by month": "d06",
    "how a team signs for spending": "d05",
    "test the backup of a database": "d03",
}
CONTRADICTIONS = {
    "The server sends a log.": ["The client sends a log.", "The server sends a saw."],
    "A nightly backup copies the database.": ["A nightly backup copies the office."],
    "A team decides.": ["A tool decides."],
}
LABELLED = [
    {"anchor": "a saw", "entailment": "a tool", "contradiction": "a server"},
    {"anchor": "the plan of a team", "entailment": "a plan", "contradiction": "a password"},
]
RUN_FILES = {
    "all-stages": """
        model = "{tiny}"
        corpus = "{zorvex}"
        seed = 5
        stages = ["extend", "preserve", "warmup", "dictionary", "dynamic", "joint", "contrast", "triplets",
                  "labelled", "distill"]
        [preserve]
        steps = 3
        [warmup]
        steps = 3
        labeller = "{dense}"
        [dictionary]
        steps = 3
        labeller = "none"
        [dynamic]
        steps = 3
        batch_size = 4
        [joint]
        pairs = "pairs.jsonl"
        steps = 3
        masked = "all"
        [contrast]
        steps = 3
        [triplets]
        triplets = "triplets.jsonl"
        steps = 3
        [labelled]
        labelled = "labelled.jsonl"
        steps = 3
        [distill]
        steps = 3
        labeller = "{dense}"
        """,
    "odd-settings": """
        model = "{tiny}"
        corpus = "{zorvex}"
        stages = ["extend", "warmup", "contrast", "distill"]
        [warmup]
        steps = 4
        gradient_accumulation = 2
        train = "attention"
        softmax = "full"
        max_tokens = 24
        [contrast]
        pairs = "pairs.jsonl"
        steps = 3
        hard_negatives = 2
        token_scales = "learnt"
        weights = { anchor = 100.0 }
        [distill]
        steps = 4
        kd = "mse"
        labeller = "none"
        precision = "bfloat16"
        penalised = "frequent"
        checkpoint_every = 2
        """,
    "dense": """
        model = "{dense}"
        corpus = "{zorvex}"
        stages = ["extend", "preserve", "dynamic", "triplets", "contrast", "rank"]
        [preserve]
        steps = 3
        [dynamic]
        steps = 3
        batch_size = 4
        [triplets]
        triplets = "triplets.jsonl"
        steps = 3
        [contrast]
        pairs = "pairs.jsonl"
        steps = 3
        form = "nt-xent"
        token_scales = "idf"
        [rank]
        steps = 3
        """,
}


@pytest.fixture(scope="module")
def inputs(
    tmp_path_factory: pytest.TempPathFactory, tiny_model: Path, zorvex_collection: Path
) -> dict[str, Path]:
    """What the commands read: INPUTS by the name in braces."""
    folder = tmp_path_factory.mktemp("inputs")
    found = {
        "tiny": tiny_model,
        "zorvex": zorvex_collection,
        "dense": tiny_dense(tiny_model, folder / "dense"),
        "mubrithal": Path(__file__).parents[1] / "collections" / "mubrithal",
    }
    rows = {
        "pairs": [{"query": query, "doc_id": name} for query, name in PAIRS.items()],
        "triplets": [{"anchor": text, "contradictions": wrong} for text, wrong in CONTRADICTIONS.items()],
        "labelled": LABELLED,
    }
    for name, entries in rows.items():
        found[f"{name}-file"] = folder / f"{name}.jsonl"
        found[f"{name}-file"].write_text("".join(f"{json.dumps(entry)}\n" for entry in entries))
    for name, text in RUN_FILES.items():
        for given in ("tiny", "zorvex", "dense"):
            text = text.replace(f"{{{given}}}", str(found[given]))
        found[f"{name}-file"] = folder / f"{name}.toml"
        found[f"{name}-file"].write_text(text)
    return found


class Workshop:
    """Carries out each case once, after those whose results it reads."""

    def __init__(self, root: Path, inputs: dict[str, Path]) -> None:
        self.root, self.inputs = root, inputs
        self.printed: dict[str, str] = {}

    def place(self, name: str) -> Path:
        """The folder of a case, in which it writes `out` or `out.SUFFIX`."""
        return self.root / name

    def make(self, name: str, run: Callable[..., Ran]) -> None:
        """Carry out a case, if that wasn't done before."""
        if name in self.printed:
            return
        line = CASES[name]
        for option, words in OPTIONS.items():
            line = line.replace(option, words)
        for before in CASES:
            if f"{{{before}}}" in line:
                self.make(before, run)
        places = {each: self.place(each) / "out" for each in CASES} | self.inputs
        places["out"] = self.place(name) / "out"
        self.place(name).mkdir()
        ran = run(*(word.format(**places) for word in shlex.split(line)))
        assert ran.status == 0, f"sparse-adapt {line}\n{ran.err}"
        self.printed[name] = ran.out if "--json" in line else ""

    def record(self, name: str) -> dict[str, Any]:
        """What a case left, by file; what it printed is one more."""
        paths = {str(self.place(each)): f"<{each}>" for each in CASES}
        paths |= {str(path): f"<{each}>" for each, path in self.inputs.items()}
        paths |= {str(path.resolve()): name for path, name in ((Path(at), to) for at, to in paths.items())}
        return record(self.place(name), self.printed[name], paths)


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory, inputs: dict[str, Path]) -> Workshop:
    return Workshop(tmp_path_factory.mktemp("made"), inputs)


@pytest.fixture(scope="module")
def recorded(request: pytest.FixtureRequest) -> Iterator[dict[str, Any]]:
    """The record, written again at the end where that is asked for."""
    again = request.config.getoption("--update-golden")
    content = json.loads(RECORD.read_text()) if RECORD.exists() else {"machine": {}, "cases": {}}
    if again and content["machine"] != machine():
        content = {"machine": machine(), "cases": {}}  # one machine made all of a record
    yield content
    if again:
        content["cases"] = {name: content["cases"][name] for name in CASES if name in content["cases"]}
        RECORD.parent.mkdir(parents=True, exist_ok=True)
        RECORD.write_text(_lines(content))


def _lines(content: dict[str, Any]) -> str:
    """A record as JSON with a line for each file, so that a diff shows which file changed."""
    cases = []
    for name, files in content["cases"].items():
        rows = ",\n".join(
            f"{json.dumps(file)}: {json.dumps(row, separators=(',', ':'))}" for file, row in files.items()
        )
        cases.append(f"{json.dumps(name)}: {{\n{rows}\n}}")
    return f'{{"machine": {json.dumps(content["machine"])},\n"cases": {{\n' + ",\n".join(cases) + "\n}}\n"


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name in SLOW else name for name in CASES]
)
def test_a_command_makes_what_it_made_before(
    name: str,
    workshop: Workshop,
    recorded: dict[str, Any],
    sparse_adapt: Callable[..., Ran],
    request: pytest.FixtureRequest,
) -> None:
    torch.set_num_threads(1)  # the same sums, and so the same bits, on any number of cores
    workshop.make(name, sparse_adapt)
    made = workshop.record(name)
    if request.config.getoption("--update-golden"):
        recorded["cases"][name] = {file: on_disk(row) for file, row in made.items()}
        return
    assert name in recorded["cases"], "not recorded yet; pytest --update-golden does it"
    exactly = recorded["machine"] == machine()
    found = difference(recorded["cases"][name], made, exactly=exactly, numbers=name not in JUDGED)
    assert not found, "\n".join([f"sparse-adapt {CASES[name]}", *found])
