"""What the pages show: examples that run, links and drawings that are there, commands that exist."""

import re
import shlex
import shutil
import tomllib
from pathlib import Path
from xml.etree import ElementTree

import pytest

import sparse_adapt
from sparse_adapt.cli.app import every_command
from sparse_adapt.pipeline.runfile import read_plan
from sparse_adapt.plugins.engines.formats import engines
from sparse_adapt.plugins.research.suite.settings import read_suite
from tools import outputs

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
SMALL = ROOT / "notebooks" / "your_corpus"  # forty documents, a glossary and judged queries
PAGES = [README, ROOT / "CONTRIBUTING.md", ROOT / "benchmarks" / "README.md"]
WRITTEN_FROM_CODE = ("commands.md", "settings.md")
PAGES += sorted(page for page in (ROOT / "docs").glob("*.md") if page.name not in WRITTEN_FROM_CODE)
EXTRAS = set(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"])
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"!?\[[^\]]*\]\((?!https?:)([^)#]*)(?:#([^)]*))?\)")


def text_of(page):
    return page.read_text(encoding="utf-8")


def blocks(language):
    """Each block of a language, with the page that has it."""
    return [(page, text) for page in PAGES for kind, text in BLOCK.findall(text_of(page)) if kind == language]


def test_readme_is_short():
    assert len(text_of(README).splitlines()) <= 150


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for place, heading in LINK.findall(text_of(page)):
        target = page.parent / place if place else page
        if target.name in WRITTEN_FROM_CODE:
            continue
        assert target.exists(), f"{page.name} links to {place}"
        if heading and target.suffix == ".md":
            anchors = {anchor(line) for line in linked_text(target).splitlines() if line.startswith("#")}
            assert heading in anchors, f"{page.name} links to {place}#{heading}"


def linked_text(page):
    """The text of a page, or of the page that it includes whole."""
    included = re.match(r"```\{include\} (\S+)", text_of(page))
    return text_of(page.parent / included[1]) if included else text_of(page)


def anchor(heading):
    """How a heading is linked: lower case, words joined by hyphens, without signs."""
    return re.sub(r"[^\w\- ]", "", heading.lstrip("#").strip().lower()).replace(" ", "-")


def test_every_drawing_is_shown_stands_alone_and_says_what_it_shows():
    shown = {
        Path(place).name for page in PAGES for place, _ in LINK.findall(text_of(page)) if ".svg" in place
    }
    drawings = sorted((ROOT / "docs" / "images").glob("*.svg"))
    assert {drawing.name for drawing in drawings} == shown
    for drawing in drawings:
        tree = ElementTree.parse(drawing)
        names = [each.tag.rsplit("}")[-1] for each in tree.getroot()]
        assert names[:2] == ["title", "desc"], drawing.name
        assert "prefers-color-scheme: dark" in text_of(drawing), drawing.name
        assert "href" not in text_of(drawing), f"{drawing.name} asks for another file"


def test_readme_shows_what_the_tutorial_shows():
    parts = [mark for mark in outputs.MARK.finditer(text_of(README)) if mark["kind"] == "lines of"]
    assert parts
    for part in parts:
        assert outputs.again(part["old"], text_of(ROOT / part["words"])) == part["old"]


def test_lines_are_found_again_in_their_order():
    page = "\n".join(["       base   last", "seen", "  semantic   1   2", "unseen", "  semantic   3   4"])
    block = "       base   last\nunseen\n  semantic   0   0\n"
    assert outputs.again(block, page) == "       base   last\nunseen\n  semantic   3   4\n"
    with pytest.raises(LookupError, match="'explicit'"):
        outputs.again("explicit   0\n", page)


def test_every_command_of_the_pages_exists_with_its_options():
    commands = {name: each for found in every_command().values() for name, each in found.items()}
    checked = 0
    for page, text in blocks("sh"):
        for line in re.sub(r"\\\n", " ", text).splitlines():
            words = shlex.split(line, comments=True)
            if words[:1] != ["sparse-adapt"]:
                continue
            command = commands.get(words[1])
            assert command is not None, f"{page.name}: {line}"
            options = {each for option in command.params for each in option.opts}
            for word in words[2:]:
                if word.startswith("-"):
                    assert word in options, f"{page.name}: {line}: {word}"
            checked += 1
    assert checked > 20


@pytest.mark.parametrize(
    "page", [page for page in PAGES if page.parent.name != "benchmarks"], ids=lambda page: page.name
)
def test_every_option_that_a_sentence_names_exists(page):
    """Among the commands' own or the benchmarks', but for those of other programs, which stand after its name."""
    commands = {name: each for found in every_command().values() for name, each in found.items()}
    options = [option for command in commands.values() for option in command.params]
    known = {flag for option in options for flag in (*option.opts, *option.secondary_opts)}
    known |= {"--help"}.union(
        *(re.findall(r'"(--[a-z-]+)"', text_of(path)) for path in (ROOT / "benchmarks").glob("*.py"))
    )
    for code in re.findall(r"`([^`\n]+)`", BLOCK.sub("", text_of(page))):
        first, *words = code.split() or [""]
        if first.startswith("--") or first in commands:
            named = {word for word in (first, *words) if re.fullmatch("--[a-z][a-z-]*", word)}
            assert named <= known, code


def test_files_of_the_page_of_formats_are_read(tmp_path, zorvex_collection):
    run, suite = [text for page, text in blocks("toml") if page.name == "formats.md"]
    shutil.copytree(zorvex_collection, tmp_path / "my-collection")
    for file in (zorvex_collection / name for name in ("terms.json", "dictionary.jsonl", "candidates.jsonl")):
        shutil.copy(file, tmp_path)
    (tmp_path / "run.toml").write_text(run, encoding="utf-8")
    (tmp_path / "suite.toml").write_text(suite, encoding="utf-8")
    plan = read_plan(tmp_path / "run.toml")
    assert plan.stages == ("extend", "warmup", "dictionary", "distill")
    assert (plan.settings["warmup"].steps, plan.settings["distill"].learning_rate) == (300, 2e-5)
    assert read_suite(tmp_path / "suite.toml").collections["general"].loses_at_most == 0.01


def test_python_page_has_every_public_name():
    page = text_of(ROOT / "docs" / "python.md")
    for name in sparse_adapt.__all__:
        assert re.search(rf"^\.\. auto(class|function):: {name}$", page, re.MULTILINE), name


@pytest.fixture(scope="module")
def made():
    """What an example has adapted already, for the next page that does the same."""
    return {}


@pytest.mark.slow
@pytest.mark.parametrize("page", [README, ROOT / "docs" / "tutorial.md"], ids=lambda page: page.name)
def test_python_of_a_page_runs(page, tmp_path, monkeypatch, made):
    """On a small corpus, with few steps and without the labeller, which reads thousands of texts."""
    adapt, train = sparse_adapt.adapt, sparse_adapt.train
    few = {"teacher": "bm25", "query_settings": {"count": 24, "held": 8}, "steps": 2}
    few["dictionary"] = {"labeller": "none"}

    def adapt_once(corpus, out, **given):
        if "result" not in made:
            made["result"] = adapt(corpus, out, **given, **few)
            made["folder"] = tmp_path / out
        else:
            shutil.copytree(made["folder"], out)
        return made["result"]

    shutil.copytree(SMALL, tmp_path / "my-collection")
    for name in ("corpus.jsonl", "glossary.csv"):
        shutil.copy(SMALL / name, tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sparse_adapt, "adapt", adapt_once)
    monkeypatch.setattr(
        sparse_adapt,
        "train",
        lambda stage, *given, **more: train(
            stage, *given, **{**more, "steps": 2} | ({"labeller": "none"} if stage == "dictionary" else {})
        ),
    )
    names: dict[str, object] = {}
    for text in (text for place, text in blocks("python") if place == page):
        exec(compile(text, page.name, "exec"), names)


def test_page_of_engines_has_each_engine_and_its_extra():
    page = text_of(ROOT / "docs" / "engines.md")
    for row in engines():
        shown = re.search(rf"^\| `{row.name}` \|.*$", page, re.MULTILINE)
        assert shown, row.name
        for needs in (row.to_write, row.to_open):
            if needs and needs[0] in EXTRAS:
                assert f"`{needs[0]}`" in shown[0], row.name


def test_tree_of_the_readme_has_each_folder_of_the_package():
    tree = re.search(r"^```\nsparse_adapt/.*?^```$", text_of(README), re.DOTALL | re.MULTILINE)
    folders = re.findall(r"^  ((?:\w+/ )+)", tree[0], re.MULTILINE)
    shown = re.findall(r"\w+", " ".join(folders))
    package = ROOT / "sparse_adapt"
    assert sorted(shown) == sorted(each.parent.name for each in package.glob("*/__init__.py"))


def test_each_extra_of_the_pages_exists():
    for page in PAGES:
        for extras in re.findall(r"pip install [^\n]*'\.\[([\w,-]+)\]'", text_of(page)):
            assert set(extras.split(",")) <= EXTRAS, page.name
