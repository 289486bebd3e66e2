"""Whatever a killed command was reading is edited before it goes on: it refuses, or makes what it would make anew.

Each input of each command that resumes. The suite looks at the quick ones, `make nightly` at all; layouts of a corpus
and compressions are in test_step.
"""

from collections.abc import Callable
from pathlib import Path

import pytest
from commands import COMMANDS, inputs, ran
from killing import State, content, restore, watched
from killing import no_clock as no_clock

pytestmark = pytest.mark.usefixtures("no_clock")

GIVEN = (
    "adapt {corpus} --model {model} --teacher {teacher} --glossary {corpus}/dictionary.jsonl "
    "--queries {corpus}/queries.jsonl --candidates {corpus}/candidates.jsonl --stages extend,contrast "
    "--batch-size 2 --epochs 0.05 --device cpu"
)
LINES = {**COMMANDS, "adapt-given": GIVEN}

CORPUS, MODEL, EXTENDED = "corpus/corpus.jsonl", "model/model.safetensors", "extended/model.safetensors"
QUICK = [("encode", CORPUS), ("encode", MODEL), ("contrast", "corpus/pairs.jsonl"), ("contrast", EXTENDED)]
MORE = [
    *(("encode", f"model/{name}") for name in ("tokenizer.json", "config.json")),
    *(("export", each) for each in (CORPUS, MODEL)),
    ("contrast", CORPUS),
    *(("dictionary", each) for each in ("corpus/dictionary.jsonl", CORPUS, EXTENDED)),
    *(("rank", each) for each in ("corpus/candidates.jsonl", CORPUS, EXTENDED)),
    *(("distill", each) for each in ("corpus/candidates.jsonl", "corpus/dictionary.jsonl", EXTENDED)),
    *(("preserve", each) for each in (CORPUS, EXTENDED, "extended/tokenizer.json", MODEL)),
    *(("warmup", each) for each in (CORPUS, EXTENDED)),
    *(("dynamic", each) for each in (CORPUS, EXTENDED)),
    *(("joint", each) for each in ("corpus/pairs.jsonl", CORPUS, EXTENDED)),
    *(("triplets", each) for each in ("corpus/triplets.jsonl", EXTENDED)),
    *(("labelled", each) for each in ("corpus/labelled.jsonl", EXTENDED)),
    *(("run", each) for each in ("corpus/terms.json", CORPUS, MODEL, "model/tokenizer.json")),
    *(("contradict", each) for each in (CORPUS, MODEL)),
    *(("suite", each) for each in (CORPUS, "corpus/queries.jsonl", "corpus/qrels/test.tsv", MODEL)),
    *(("adapt", each) for each in (CORPUS, MODEL)),
    *(("adapt-given", f"corpus/{name}.jsonl") for name in ("dictionary", "queries", "candidates")),
    ("adapt-given", "teacher/file.run"),
]
EDITS: dict[str, Callable[[bytes], bytes]] = {
    "model.safetensors": lambda content: content[:-4] + bytes([content[-4] ^ 64]) + content[-3:],
    "tokenizer.json": lambda content: content + b"\n",
    "config.json": lambda content: content + b"\n",
    "terms.json": lambda content: content.replace(b"zorvex", b"agents"),
    "dictionary.jsonl": lambda content: content.replace(b"spending", b"earning"),
    "test.tsv": lambda content: content.replace(b"\t1\n", b"\t2\n", 1),
    "file.run": lambda content: content.replace(b" 9 ", b" 8 "),
}


def edit_text(content: bytes) -> bytes:
    """One word is another."""
    return content.replace(b"backup", b"bureau", 1)


class Begun:
    """Commands that were killed in the middle: where each writes, and what was there; made when it is asked for."""

    def __init__(self, folder: Path, words: dict[str, str]) -> None:
        self.folder, self.words, self.states = folder, words, dict[str, State]()

    def line(self, name: str) -> list[str]:
        """The words of a command."""
        return [*LINES[name].format(**self.words).split(), "-o", str(self.folder / "whole")]

    def half(self, name: str) -> State:
        """What a kill in the middle leaves."""
        if name not in self.states:
            restore(self.folder, {})
            states = list(watched(self.folder, lambda: ran(*self.line(name))).states.values())
            self.states[name] = states[len(states) * 2 // 3]
        return self.states[name]


@pytest.fixture(scope="module")
def begun(tiny_model, tmp_path_factory) -> Begun:
    folder = tmp_path_factory.mktemp("edited")
    words = inputs(folder, tiny_model)
    teacher = folder / "teacher.run"
    asked = [f"{split}-{number}" for split in ("train", "held") for number in range(80)]
    teacher.write_text("".join(f"{q} Q0 d{n} {n + 1} {99 - n} run\n" for q in asked for n in range(14)))
    (folder / "out").mkdir()
    return Begun(folder / "out", words | {"teacher": str(teacher)})


def check(begun: Begun, name: str, edited: str) -> bool:
    """Whether a killed command refuses to go on once a file is edited; else it makes what it would anew."""
    word, _, inside = edited.partition("/")
    place = Path(begun.words[word])
    path = place if place.is_file() else place / inside
    half, before = begun.half(name), path.read_bytes()
    after = EDITS.get(path.name, edit_text)(before) if place.is_dir() else EDITS["file.run"](before)
    assert after != before, edited
    path.write_bytes(after)
    try:
        restore(begun.folder, half)
        status, said = ran(*begun.line(name), "--resume")
        if status:
            assert status == 2 and said.splitlines()[-1].startswith("error: "), said
            return True
        resumed = content(begun.folder)
        restore(begun.folder, {})
        assert ran(*begun.line(name))[0] == 0
        anew = content(begun.folder)
        assert resumed.keys() == anew.keys()
        differ = [each for each in anew if resumed[each] != anew[each]]
        assert not differ, (name, edited, differ)
        return False
    finally:
        path.write_bytes(before)


@pytest.mark.parametrize(("name", "edited"), QUICK)
def test_an_edit_between_a_kill_and_the_resume_is_noticed(begun, name, edited):
    assert check(begun, name, edited)


@pytest.mark.nightly
@pytest.mark.parametrize(("name", "edited"), MORE)
def test_any_edit_between_a_kill_and_the_resume_is_noticed(begun, name, edited):
    print(f"{name}, {edited}: {'refused' if check(begun, name, edited) else 'made anew'}")  # noqa: T201
