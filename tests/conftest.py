"""Small things that most tests need: twelve documents, and a masked language model of 200 tokens."""

import os
import re
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
import torch

from sparse_adapt.collection.readers import Document
from sparse_adapt.registry import registry

os.environ.pop("COLUMNS", None)  # tables are as wide as in a pipe, whoever runs the tests

GOLDEN = Path(__file__).parent / "golden"
OF_PLUGINS = (  # commands of plug-ins
    *(
        "add-terms",
        "check-export",
        "coin",
        "contradict",
        "export",
        "explore",
        "groups",
        "index",
        "pack",
        "packs",
    ),
    *(
        "contrast",
        "dynamic",
        "joint",
        "labelled",
        "published",
        "recovery",
        "relevant-words",
        "report",
        "similarity",
    ),
    *("triplets", "unpack"),
)
LONG = ("test_run", "test_same_bytes", "test_adapting", "test_stages", "test_meanings", "test_pairing")
TINY_TOKENS = 200
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
SIGNS = list(".,;:-_'?()/+")
LETTERS = list("abcdefghijklmnopqrstuvwxyz0123456789")
ENDINGS = [
    f"##{ending}"
    for ending in ("s", "ed", "ing", "er", "ion", "ly", "al", "es", "en", "an", "on", "in", "at")
]
ENDINGS += ["##or", "##re"]

TWELVE = [
    ("d01", "Login", "OAuth2 hands the client an access token; a long-term secret stays on the server."),
    (
        "d02",
        "Pools",
        "Set max_connections before the pool of the database is full, and log each refused client.",
    ),
    (
        "d03",
        "Backups",
        "A nightly backup copies the database to a second server. Test the backup every week.",
    ),
    ("d04", "Certificates", "Renew a certificate before it expires, or the client refuses the server."),
    ("d05", "Zorvex in brief", "Zorvex is how a team decides what it may spend and who signs for it."),
    ("d06", "Zorvex reports", "A zorvex report compares what a team spent with its plan, month by month."),
    ("d07", "", "Who owns zorvex? The office that signs for spending, not the team that runs the server."),
    ("d08", "Tools for wood", "A saw, a plane and a good file: the tools of every wood shop in the company."),
    ("d09", "Agents", "The agent sends its log to the server; kubectl logs shows what the agent saw."),
    (
        "d10",
        "Passwords",
        "A long password is better than a strange one. The server never stores the password itself.",
    ),
    ("d11", "Cells", "Type-III receptors of naïve cells bind IL-2; see the second report (page 7)."),
    ("d12", "Empty on purpose", ""),
]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="rewrite the golden files of file formats")


def pytest_runtest_setup(item: pytest.Item) -> None:
    """What needs a GPU is skipped where there is none."""
    if item.get_closest_marker("gpu") is not None:
        import torch

        if not torch.cuda.is_available():
            pytest.skip("needs a GPU")


def lacks_plugin(item: pytest.Item) -> bool:
    """Whether a test needs a plug-in that this checkout lacks, or gives a command line of one."""
    if not registry().missing:
        return False
    named = {name for mark in item.iter_markers("plugins") for name in mark.args}
    values = getattr(getattr(item, "callspec", None), "params", {}).values()
    words = [value[0] if isinstance(value, tuple | list) and value else value for value in values]
    commands = [word.split()[0] for word in words if isinstance(word, str) and word.split()]
    options = any(f"{option} " in str(word) for word in words for option in ("--index", "--html"))
    return bool(named & registry().missing.keys()) or options or any(each in OF_PLUGINS for each in commands)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The demo's own module first, whatever else looks at the demo last; no nightly test unless they are asked for.

    The demo trains for minutes: of several workers one begins with it, and none waits for it. Other modules that take
    long come early, so that no worker is alone with one at the end.
    """
    if "nightly" not in config.option.markexpr:
        config.hook.pytest_deselected(items=[item for item in items if "nightly" in item.keywords])
        items[:] = [item for item in items if "nightly" not in item.keywords]
    lacking = [item for item in items if lacks_plugin(item)]
    if lacking:
        config.hook.pytest_deselected(items=lacking)
        items[:] = [item for item in items if item not in lacking]
    looking = {item.path.stem for item in items if "demo_run" in getattr(item, "fixturenames", ())}
    place = {name: 3 for name in looking} | {"test_demo": 0} | dict.fromkeys(LONG, 1)
    items.sort(key=lambda item: place.get(item.path.stem, 2))


@pytest.fixture(scope="session", autouse=True)
def few_questions() -> Iterator[None]:
    """A run measures forgetting on few questions, and its page looks at few background queries."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sparse_adapt.selection.questions.MOST", 30)
        patch.setattr("sparse_adapt.selection.models.FORGETS", 1.0)  # so few say nothing of half a point
        patch.setattr("sparse_adapt.retrieve.activity.BACKGROUND_TEXTS", 40)
        yield


@pytest.fixture(scope="module", autouse=True)
def few_passages(request: pytest.FixtureRequest) -> Iterator[None]:
    """Stages read few general passages and texts; all of them only where bytes are compared with the record."""
    from sparse_adapt.synthetic.background import background_pairs, like_queries

    like_queries.cache_clear()  # some of them are drawn from the texts
    with pytest.MonkeyPatch.context() as patch:
        if request.module.__name__ != "test_same_bytes":
            patch.setattr("sparse_adapt.objectives.texts.GENERAL_ONE_IN", 40)
            for reader in ("objectives.anchor", "synthetic.background"):
                patch.setattr(f"sparse_adapt.{reader}.TEXTS", 400)
            some = "sparse_adapt.objectives.general_candidates.background_pairs"
            patch.setattr(some, lambda: background_pairs()[::40])
        yield


@pytest.fixture(autouse=True)
def threads_as_before() -> Iterator[None]:
    """Whatever number of threads a test sets, the next one starts with torch's own."""
    allowed = torch.get_num_threads()
    yield
    torch.set_num_threads(allowed)


class Ran(NamedTuple):
    """How a command ended, and what it wrote where."""

    status: int
    out: str
    err: str

    @property
    def messages(self) -> list[str]:
        """Lines of standard error; a bar leaves empty ones."""
        return [line for line in self.err.splitlines() if line.strip()]

    @property
    def errors(self) -> list[str]:
        """What it ended by."""
        return [line for line in self.messages if line.startswith("error: ")]


def refused(ran: Ran) -> str:
    """The one line by which a command refused what it was asked."""
    assert ran.status == 2
    assert len(ran.errors) == 1, ran.err
    assert "Traceback" not in ran.err
    return ran.errors[0]


@pytest.fixture
def sparse_adapt(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Ran]:
    """Run a command in this process."""

    def run(*words: object) -> Ran:
        from sparse_adapt import cli

        monkeypatch.setattr(sys, "argv", ["sparse-adapt", *map(str, words)])
        capfd.readouterr()
        status = 0
        try:
            cli.main()
        except SystemExit as end:
            status = int(end.code or 0)
        return Ran(status, *capfd.readouterr())

    return run


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Compare a text with the file of that name under tests/golden, or rewrite it with --update-golden."""

    def compare(name: str, text: str) -> None:
        path = GOLDEN / name
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8", newline="")
        assert text == path.read_bytes().decode(), f"{path}: pytest --update-golden rewrites it"

    return compare


@pytest.fixture
def golden_folder(
    request: pytest.FixtureRequest, golden: Callable[[str, str], None]
) -> Callable[[Path, str], None]:
    """Compare all files of a folder with those of the folder of that name under tests/golden, or rewrite these."""

    def compare(folder: Path, name: str) -> None:
        if request.config.getoption("--update-golden"):
            shutil.rmtree(GOLDEN / name, ignore_errors=True)
        else:
            assert _files(folder) == _files(GOLDEN / name)
        for file in _files(folder):
            golden(f"{name}/{file}", (folder / file).read_bytes().decode())

    return compare


def _files(folder: Path) -> list[str]:
    """Every file by its path in the folder, but for the marker, which lists the others."""
    found = (path for path in folder.rglob("*") if path.is_file() and path.name != "sparse-adapt.json")
    return sorted(path.relative_to(folder).as_posix() for path in found)


@pytest.fixture(scope="session")
def twelve_documents() -> list[Document]:
    """Short technical texts; "zorvex" is an invented word in three of them, and the last has no text."""
    return [Document(document_id, text, title) for document_id, title, text in TWELVE]


def tiny_vocabulary() -> list[str]:
    """Special tokens, signs, every letter and digit inside and at the start of words, then frequent words.

    Words that the tests treat as new to the model (zorvex, kubectl, certificate) are left out.
    """
    words = Counter(
        re.findall(r"[a-z]{2,}", " ".join(f"{title} {text}".lower() for _, title, text in TWELVE))
    )
    new = {"zorvex", "oauth", "kubectl", "certificate", "certificates", "na", "ve", "il", "iii"}
    frequent = sorted(words.keys() - new, key=lambda word: (-words[word], word))
    start = [*SPECIAL, *SIGNS, *LETTERS, *(f"##{letter}" for letter in LETTERS), *ENDINGS]
    return list(dict.fromkeys([*start, *frequent]))[:TINY_TOKENS]


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model folder: BERT, two layers, 16 wide, two heads, 200 lower-case WordPiece tokens. Read only.

    Its random rows are scaled so that about one weight in six is positive. Copy it before changing a file.
    """
    import torch
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
    from transformers import BertConfig, BertForMaskedLM, PreTrainedTokenizerFast

    folder = tmp_path_factory.mktemp("tiny") / "model"
    vocabulary = {token: index for index, token in enumerate(tiny_vocabulary())}
    assert len(vocabulary) == TINY_TOKENS
    raw = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    raw.normalizer = normalizers.BertNormalizer(lowercase=True)
    raw.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    raw.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    raw.decoder = decoders.WordPiece()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=raw,
        model_max_length=64,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
    )
    config = BertConfig(
        vocab_size=TINY_TOKENS,
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=64,
    )
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(20)
        model = BertForMaskedLM(config).eval()
        model.bert.embeddings.word_embeddings.weight.normal_(0.0, 0.5)
        model.cls.predictions.bias.normal_(-4.6, 0.5)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


QUERIES = [
    ("q1", "who refuses the client", "control", {"d02": 1, "d04": 1}, "train"),
    ("q2", "zorvex reports month by month", "explicit", {"d06": 2, "d05": 1, "d07": 1}, "train"),
    ("q3", "how a team signs for spending", "semantic", {"d05": 1, "d06": 1, "d07": 1}, "train"),
    ("q4", "test the backup of a database", "control", {"d03": 1}, "test"),
    ("q5", "who owns zorvex", "explicit", {"d07": 1, "d05": 1, "d06": 1}, "test"),
    ("q6", "the plan of what to spend", "semantic", {"d05": 1, "d06": 1, "d07": 1}, "test"),
]


@pytest.fixture(scope="session")
def zorvex_collection(tmp_path_factory: pytest.TempPathFactory, twelve_documents: list[Document]) -> Path:
    """The twelve documents as a collection of a new term, with all files that the demo reads. Read only."""
    from sparse_adapt.collection.examples import Candidates, write_candidates
    from sparse_adapt.collection.glossary import Definition, write_dictionary
    from sparse_adapt.collection.readers import Query, write_documents, write_judgements, write_queries
    from sparse_adapt.terms.mining import Term, write_terms

    folder = tmp_path_factory.mktemp("collection") / "zorvex"
    write_documents(folder / "corpus.jsonl", twelve_documents)
    write_queries(folder / "queries.jsonl", [Query(name, text, kind) for name, text, kind, _, _ in QUERIES])
    for split in ("train", "test"):
        judged = {name: relevant for name, _, _, relevant, where in QUERIES if where == split}
        write_judgements(folder / "qrels" / f"{split}.tsv", judged)
    others = ("d01", "d08", "d09", "d10")
    candidates = [
        Candidates(name, text, (*relevant, *others), (*(9.0 - i for i in range(len(relevant))), *[-8.0] * 4))
        for name, text, _, relevant, split in QUERIES
        if split == "train"
    ]
    write_candidates(folder / "candidates.jsonl", candidates)
    write_terms(folder / "terms.json", [Term("zorvex", "coined")])
    definition = "the way in which a team decides what it may spend"
    write_dictionary(
        folder / "dictionary.jsonl", [Definition("zorvex", definition, ("a zorvex report of the team",))]
    )
    return folder


@pytest.fixture(scope="module")
def written(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An export of odd documents in the format of the module's name, test_FORMAT. Read only."""
    from odd import export_odd

    name = request.module.__name__.removeprefix("test_")
    return export_odd(name, tmp_path_factory.mktemp(name) / "it's here")


@pytest.fixture
def exported(written: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    import shutil

    return Path(shutil.copytree(written, tmp_path / "exported"))


@pytest.fixture(scope="session")
def extended(tmp_path_factory: pytest.TempPathFactory, tiny_model: Path, zorvex_collection: Path) -> Path:
    """The tiny model with a token for "zorvex". Read only."""
    from sparse_adapt.files.place import Place
    from sparse_adapt.stages.runner import carry_out_stage

    folder = tmp_path_factory.mktemp("extended") / "model"
    carry_out_stage("extend", str(tiny_model), {"terms": zorvex_collection / "terms.json"}, Place(folder))
    return folder


@pytest.fixture(scope="session")
def tiny_run(tmp_path_factory: pytest.TempPathFactory, tiny_model: Path, zorvex_collection: Path) -> Path:
    """A whole run of four stages of four steps, from the tiny model. Read only: copy it before changing a file."""
    from sparse_adapt.files.place import Place
    from sparse_adapt.pipeline.plan import make_plan
    from sparse_adapt.pipeline.run import run

    quick = {"steps": 4, "batch_size": 4, "checkpoint_every": 2, "device": "cpu", "labeller": "none"}
    plan = make_plan(str(zorvex_collection), model=str(tiny_model), overrides=quick)
    return run(plan, Place(tmp_path_factory.mktemp("tiny_run") / "run")).folder


DEMO = """
from sparse_adapt.cli import main
from sparse_adapt.selection import questions

questions.MOST = 90  # general ones, by each model
main()
"""
SHORT_DEMO = """
from sparse_adapt.synthetic import background

some = background.background_pairs()[::8]
background.background_pairs, background.TEXTS = lambda: some, 500

from pathlib import Path

from sparse_adapt.files.place import Place
from sparse_adapt.pipeline import demo
from sparse_adapt.pipeline.plan import make_plan
from sparse_adapt.retrieve import activity
from sparse_adapt.selection import questions
from sparse_adapt.synthetic import labelled

questions.MOST, activity.BACKGROUND_TEXTS, labelled.WORDS, labelled.POOL = 90, 400, 5_000, 1_500
plan = make_plan("gatrocraptic", overrides={"steps": 60})
demo.run_demo(plan, Place(Path("runs/gatrocraptic"), resume=True))
"""


@pytest.fixture(scope="session")
def demo_run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `sparse-adapt demo` leaves: every stage on the real model, in some minutes. Read only.

    One for all workers. In the nightly suite with every default, elsewhere of fewer steps, texts and words.
    """
    import subprocess

    from filelock import FileLock

    own = tmp_path_factory.getbasetemp()
    shared = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own
    code = DEMO if "nightly" in request.config.option.markexpr else SHORT_DEMO
    command = [sys.executable, "-c", code, "demo", "--resume"]
    one_thread = {**os.environ, "OMP_NUM_THREADS": "1"}  # the same sums on any number of cores
    with FileLock(shared / "demo.lock"):
        subprocess.run(command, check=True, cwd=shared, env=one_thread)
    return shared / "runs" / "gatrocraptic"
