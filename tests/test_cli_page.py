"""The first page of help, what every command has, and how a command ends before its end."""

import os
import re
import signal
import subprocess
import sys

import pytest
from conftest import refused

from sparse_adapt.cli import app

SCREEN = 50  # lines
RESEARCH = {
    "coin",
    "recovery",
    "contradict",
    "triplets",
    "labelled",
    "groups",
    "similarity",
    "relevant-words",
}
RESEARCH |= {"dynamic", "joint", "published"}
COMMAND = [sys.executable, "-c", "from sparse_adapt.cli import main; main()"]


def names() -> list[str]:
    return sorted(app.command_names())


@pytest.fixture
def page(sparse_adapt, monkeypatch) -> list[str]:
    monkeypatch.setenv("COLUMNS", "80")
    shown = sparse_adapt("--help")
    assert shown.status == 0
    return shown.out.splitlines()


def of_research(page: list[str]) -> list[str]:
    """The commands of the last panel, which shows their names alone."""
    return " ".join(page[page.index("Research") + 1 :]).split()


@pytest.mark.plugins("research")
def test_the_page_fits_on_one_screen_and_has_every_command(page):
    assert len(page) <= SCREEN
    assert max(map(len, page)) <= 80
    above = page[: page.index("Research")]
    listed = [match[1] for line in above if (match := re.match(r"  (\S+)  +\S", line))]
    assert sorted([*listed, *of_research(page)]) == names()


@pytest.mark.plugins("research")
def test_research_stands_after_the_main_path(page):
    panels = [line for line in page if line in app.PANELS]
    assert panels == list(app.PANELS)
    assert panels[-1] == "Research"
    assert set(of_research(page)) == RESEARCH


@pytest.mark.plugins("research")
def test_a_summary_is_a_line_that_isnt_broken(page):
    for line in filter(None, page[page.index("Start") :]):
        assert line in app.PANELS or line.startswith("  "), line


READS_AS_THE_MODEL_SAYS = {  # encodes, and still has no --max-tokens: why
    "demo": "its documents are short, and its figures are compared with those of the pages",
    "calibrate": "the model that it saves reads as much as before",
    "run": "each stage of a run file has max_tokens",
    "report": "the run reads as much of a document as it did",
    "explore": "the run reads as much of a document as it did",
    **dict.fromkeys(("add-terms", "pack", "unpack"), "moves rows, and reads documents as the model says"),
    "contradict": "fills gaps of sentences, and encodes nothing",
    **dict.fromkeys(("check", "terms", "extend", "coin"), "reads the tokenizer alone"),
}


@pytest.mark.plugins("engines")
def test_every_command_that_encodes_can_be_told_how_much_of_a_text_to_read():
    commands = {name: each for found in app.every_command().values() for name, each in found.items()}
    options = {
        name: {flag for each in command.params for flag in each.opts} for name, command in commands.items()
    }
    takes_model = {name for name, flags in options.items() if flags & {"--model", "--reference"}}
    without = {name for name in takes_model if "--max-tokens" not in options[name]}
    assert without <= READS_AS_THE_MODEL_SAYS.keys()
    assert all("--max-tokens" not in options[name] for name in READS_AS_THE_MODEL_SAYS)


@pytest.mark.plugins("packs")
def test_an_argument_that_takes_many_values_is_the_last_one():
    """Or the last of its values would be taken for the next argument: `unpack FILE FILE`."""
    arguments = {
        name: [param for param in command.params if param.param_type_name == "argument"]
        for found in app.every_command().values()
        for name, command in found.items()
    }
    many = {name: found for name, found in arguments.items() if any(each.nargs == -1 for each in found)}
    assert "unpack" in many
    assert all(found[-1].nargs == -1 for found in many.values()), many
    assert all(each.nargs == 1 for found in many.values() for each in found[:-1])


@pytest.mark.parametrize("command", names())
def test_every_command_explains_itself_by_h(sparse_adapt, command):
    short = sparse_adapt(command, "-h")
    assert short.status == 0
    assert f"Usage: sparse-adapt {command}" in short.out
    assert short.out == sparse_adapt(command, "--help").out


# -- completion -------------------------------------------------------------------------------------


def test_a_shell_gets_a_completion_script():
    line = f"{sys.executable} -c 'from sparse_adapt.cli import main; main()' --show-completion bash; exit $?"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "complete -o default -F" in done.stdout


@pytest.mark.plugins("engines")
@pytest.mark.parametrize(
    ("typed", "completed"),
    [
        ("sparse-adapt rec", ["recovery"]),
        ("sparse-adapt adapt --gl", ["--glossary"]),
        ("sparse-adapt dictionary --gl", ["--glossary"]),
    ],
)
def test_completion_knows_commands_and_options(sparse_adapt, monkeypatch, typed, completed):
    for name, value in {"COMP_WORDS": typed, "COMP_CWORD": str(typed.count(" "))}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("_SPARSE_ADAPT_COMPLETE", "complete_bash")
    done = sparse_adapt()
    assert done.out.split() == completed, done.err


# -- one name a thing -------------------------------------------------------------------------------


@pytest.mark.parametrize("flag", ["--corpus nowhere", "--corpus=nowhere", "nowhere"])
@pytest.mark.parametrize("command", ["terms", "check", "adapt"])
def test_a_corpus_is_given_by_its_place_or_its_name(sparse_adapt, tmp_path, monkeypatch, command, flag):
    monkeypatch.chdir(tmp_path)
    assert "nowhere: no such file or folder" in refused(sparse_adapt(command, *flag.split()))


@pytest.mark.parametrize("flag", ["--corpus nowhere", "--corpus=nowhere", "--collection nowhere"])
def test_a_judged_collection_is_a_corpus_too(sparse_adapt, tmp_path, monkeypatch, flag):
    monkeypatch.chdir(tmp_path)
    given = ("evaluate", "--model", "splade-tiny", *flag.split())
    assert "nowhere: no such file or folder" in refused(sparse_adapt(*given))
    assert "No such option: --collection" in refused(sparse_adapt("verify", "x", "--collection", "y"))


def test_a_corpus_that_is_named_without_one_is_missing(sparse_adapt):
    assert "Missing argument 'CORPUS'" in refused(sparse_adapt("check", "--corpus"))
    assert "terms needs CORPUS" in refused(sparse_adapt("terms", "--corpus")), "or a glossary"


# -- stopped ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", names())
def test_what_a_stopped_command_says_follows_from_its_options(sparse_adapt, monkeypatch, command):
    taken = "--resume" in sparse_adapt(command, "--help").out
    words = [command, "one thing", *(["--suite", "s.toml"] if command == "evaluate" else [])]
    wanted = (
        f"stopped; go on with: sparse-adapt {command} 'one thing'"
        if taken
        else "stopped; nothing was written"
    )
    said = app._interrupted(words)
    assert said.startswith(wanted)
    assert said.endswith("--resume") == taken


def test_resuming_is_named_once_and_only_where_it_counts():
    assert (
        app._interrupted(["adapt", "c", "--resume"]) == "stopped; go on with: sparse-adapt adapt c --resume"
    )
    assert app._interrupted(["evaluate", "--model", "m"]) == "stopped; nothing was written"
    assert app._interrupted([]) == "stopped; nothing was written"


@pytest.mark.plugins("engines")
def test_being_terminated_says_what_ctrl_c_says(sparse_adapt, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    before = signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr(
        "sparse_adapt.plugins.research.contradicting.writing.write",
        lambda *arguments, **named: os.kill(os.getpid(), signal.SIGTERM),
    )
    done = sparse_adapt("contradict", "gatrocraptic", "-o", "x.jsonl")
    assert done.status == 143
    assert (
        done.messages[-1] == "stopped; go on with: sparse-adapt contradict gatrocraptic -o x.jsonl --resume"
    )
    assert signal.getsignal(signal.SIGTERM) is before
