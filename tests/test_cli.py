import json
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from sparse_adapt.collection.readers import read_queries, read_run


def everything_under(folder: Path) -> dict[str, bytes | None]:
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in folder.rglob("*")
    }


# -- help -------------------------------------------------------------------------------------------


def test_importing_the_command_line_loads_nothing_heavy():
    heavy = ("torch", "transformers", "numpy", "scipy", "pydantic", "tokenizers", "numba", "ranx")
    code = f"import sys, sparse_adapt.cli; sys.exit([m for m in {heavy} if m in sys.modules] or 0)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.plugins("engines")
def test_help_loads_nothing_heavy_either():
    code = (
        "import sys; from sparse_adapt import cli; sys.argv = ['sparse-adapt', '--help']; cli.main();"
        "sys.exit(any(m in sys.modules for m in ('torch', 'numpy', 'pydantic')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert all(name in done.stdout for name in {mistake.split()[0] for mistake in MISTAKES} - {"wramup"})


def test_the_version(sparse_adapt):
    from sparse_adapt import __version__

    assert sparse_adapt("--version").out == f"sparse-adapt {__version__}\n"


# -- a user's mistakes ------------------------------------------------------------------------------

BROKEN = '{"_id": "a", "text": "x"}\n{"_id": "b"}\n'

# a command line, and what is wrong with it
MISTAKES = {
    "demo --corpus nowhere -o x": "nowhere",
    "demo --corpus {flat} -o x": "terms",
    "demo --preset publishd -o x": "did you mean 'published'",
    "terms no.jsonl": "no.jsonl: no such file",
    "terms {broken} -o t.json": 'broken.jsonl:2: needs a string "text"',
    "terms {empty}": "empty.jsonl: holds no documents",
    "terms gatrocraptic -o {empty}": "already there",
    "terms gatrocraptic --top 0": "--top",
    "extend --model ./no --terms {terms} -o x": "./no: no such model",
    "extend --terms {badterms} -o x": "badterms.json:1: broken JSON",
    "extend --terms {terms} -o {taken}": "already there",
    "extend --terms {terms} -o {empty}/x": "empty.jsonl/x: can't be written",
    "run {goodrun} -o {empty}/x": "empty.jsonl/x: can't be written",
    "encode --model {tiny} --corpus {corpus} -o {empty}/x": "empty.jsonl/x: can't be written",
    "terms gatrocraptic -o {empty}/terms.json": "empty.jsonl/terms.json: can't be written",
    "warmup --model {tiny} --corpus {corpus} -o x": "extend it first",
    "warmup --model {extended} --corpus {corpus} -o x --learning-rate -1": "learning_rate should be greater than 0",
    "warmup --model {extended} --corpus {corpus} -o x --device gpu": "choose auto, cpu, cuda, mps",
    "warmup --model {extended} --corpus {corpus} -o x --precision fp8": "precision should be 'float32'",
    "warmup --model {extended} --corpus {corpus} -o x --seed one": "Invalid value for '--seed'",
    "warmup --model {extended} -o x": "Missing option '--corpus'",
    "words {corpus}": "Missing argument 'CORPUS' of words MODEL CORPUS; see sparse-adapt words --help",
    "dictionary --model {extended} --glossary {otherwords} -o x": "is of a new term",
    "dictionary --model {extended} --glossary {nodefinition} -o x": 'nodefinition.jsonl:1: needs a string "definition"',
    "distill --model {tiny} --candidates {nan} --corpus {corpus} -o x": "nan.jsonl:1:",
    "distill --model {tiny} --candidates {unknown} --corpus {corpus} -o x": 'unknown.jsonl:1: document "nowhere"',
    "distill --model {tiny} --candidates {short} --corpus {corpus} -o x": "short.jsonl:1:",
    "run": "run needs a run file; make one with: sparse-adapt run --template",
    "run no.toml -o x": "no.toml: no such file",
    "run {badrun} -o x": "badrun.toml:2: unknown key 'modle'; did you mean",
    "check {broken}": 'broken.jsonl:2: needs a string "text"',
    "diagnose x --model ./no": "./no: no such model",
    "diagnose ' ' --model {tiny} --corpus {corpus}": "reduces it to nothing",
    "diagnose x --model {tiny} --corpus {corpus} --document d99": "d99",
    "explain ' ' --model {tiny} --corpus {corpus}": "is empty",
    "explain x --model {tiny} --corpus no.tsv": "no.tsv: no such file",
    "evaluate --model {tiny} --collection {corpus} --split dev": 'no split "dev"; there are test, train',
    "evaluate --model {tiny} --collection {corpus} --general no": "no: no such file or folder, bundled corpus",
    "evaluate --model {tiny}": "evaluate needs --model and --collection, or --suite FILE",
    "report {taken}": "no report.json here",
    "report nowhere": "nowhere: no such folder",
    "explore {tiny}": "names no corpus; name one: --corpus CORPUS",
    "explore ./no --corpus {corpus}": "./no: no such model",
    "explain x --model {tiny} --corpus {corpus} --html {broken}": "broken.jsonl",
    "diagnose --model {tiny} --corpus {corpus} --html x.html": "--html is for a term",
    "calibrate --model {extended} -o x": "needs --lower-bias TERM=AMOUNT or --target-activations SHARE",
    "calibrate --model {extended}": "needs -o DIR",
    "calibrate --model {extended} --lower-bias zorvex=much -o x": "write a term and a number",
    "calibrate --model {extended} --target-activations 500% -o x": "write a share, such as 5%",
    "calibrate --model {extended} --corpus {corpus} --lower-bias zorvx=1 -o x": "did you mean 'zorvex'",
    "calibrate --model {tiny} --corpus {corpus} --target-activations 5% -o x": "has no new token to calibrate",
    "encode --model {tiny} --corpus {empty} -o x": "holds no documents",
    "encode --model {tiny} --corpus {corpus} -o x --device gpu": "--device gpu: choose auto",
    "encode --model {tiny} --corpus {corpus} -o {taken}": "already there",
    "export solr --model {tiny} --corpus {corpus} -o x": "unknown export format 'solr'",
    "export anserini --model {tiny} --corpus {corpus} -o x --scale 0": "scale",
    "export anserini --model {tiny} --corpus {corpus} -o x --queries no.tsv": "no.tsv: no such file",
    "index --vectors {taken} -o x": "no manifest.json here",
    "search x --model {tiny} --index {taken}": "no index.json here",
    "search --model {tiny}": "name what to look for: QUERY, or --queries",
    "search x --model {tiny} --index {taken} --vectors {taken}": "name one place to search",
    "search x --model {tiny} --vectors {empty}": "no such folder",
    "encode --model {tiny} --corpus {corpus} -o x --engine spark": "unknown --engine 'spark'; there are local, ray",
    "encode --model {tiny} --corpus nowhere2://x/corpus.jsonl -o x": "Protocol not known: nowhere2",
    "search '' --model {tiny} --index {taken}": "is empty",
    "wramup": "Did you mean 'warmup'?",
    "encode --modle x": "No such option",
}


@pytest.fixture
def places(tmp_path, tiny_model, extended, zorvex_collection):
    """Files with something wrong in them, and some that are right."""
    folder = tmp_path / "files"
    folder.mkdir()
    candidates = {"query_id": "q", "query": "x", "doc_ids": ["d01", "d02"], "teacher_scores": [1.0, 2.0]}
    texts = {
        "broken": BROKEN,
        "empty": "",
        "flat": '{"_id": "a", "text": "x"}\n',
        "otherwords": '{"term": "kubectl", "definition": "a command"}\n',
        "nodefinition": '{"term": "zorvex"}\n',
        "nan": json.dumps({**candidates, "teacher_scores": [1.0, float("nan")]}),
        "unknown": json.dumps({**candidates, "doc_ids": ["d01", "nowhere"]}),
        "short": json.dumps({**candidates, "teacher_scores": [1.0]}),
    }
    paths = {name: folder / f"{name}.jsonl" for name in texts}
    for name, text in texts.items():
        paths[name].write_text(text)
    for name, text in (("badterms", "{"), ("knownterms", '{"a": ["database"]}')):
        paths[name] = folder / f"{name}.json"
        paths[name].write_text(text)
    paths["badrun"] = folder / "badrun.toml"
    paths["badrun"].write_text('corpus = "gatrocraptic"\nmodle = "splade-tiny"\n')
    paths["goodrun"] = folder / "goodrun.toml"
    paths["goodrun"].write_text('corpus = "gatrocraptic"\n')
    paths["taken"] = folder / "taken"
    paths["taken"].mkdir()
    (paths["taken"] / "mine.txt").write_text("keep")
    paths |= {"tiny": tiny_model, "extended": extended, "corpus": zorvex_collection}
    paths["terms"] = zorvex_collection / "terms.json"
    return {name: str(path) for name, path in paths.items()}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_one_line_and_leaves_nothing(sparse_adapt, tmp_path, monkeypatch, places, mistake):
    problem = MISTAKES[mistake]
    monkeypatch.chdir(tmp_path)
    before = everything_under(tmp_path)
    done = sparse_adapt(*(word.format(**places) for word in shlex.split(mistake)))
    assert done.status == 2, done.err
    assert len(done.errors) == 1, done.err
    assert problem in done.errors[0]
    assert done.err.splitlines()[-1] == done.errors[0]
    assert "Traceback" not in done.err
    assert done.out == ""
    assert everything_under(tmp_path) == before


def test_a_bug_keeps_its_traceback(sparse_adapt, monkeypatch):
    monkeypatch.setattr("sparse_adapt.collection.arguments.read_documents", lambda source: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        sparse_adapt("terms", "gatrocraptic")


@pytest.mark.parametrize(("memory", "torch_has"), [(2**55, True), (sys.maxsize, False)])
def test_a_command_without_memory_says_how_to_go_on_with_less(
    sparse_adapt, monkeypatch, tmp_path, extended, zorvex_collection, memory, torch_has
):
    """Neither torch nor Python has so much."""

    def take(*arguments, **settings):
        import torch

        return torch.empty(memory, dtype=torch.uint8) if torch_has else bytearray(memory)

    monkeypatch.setattr("sparse_adapt.stages.runner.train", take)
    words = ["warmup", "--model", extended, "--corpus", zorvex_collection, "-o", tmp_path / "out"]
    done = sparse_adapt(*words)
    assert done.status == 2
    resumed = f"sparse-adapt {' '.join(map(str, words))} --resume"
    last = f"error: out of memory; --memory, such as 8G, bounds it; stopped; go on with: {resumed}"
    assert done.err.splitlines()[-1] == last
    assert (tmp_path / "out.partial").is_dir()


def test_an_interrupted_command_says_how_to_go_on(
    sparse_adapt, monkeypatch, tmp_path, extended, zorvex_collection
):
    def interrupt(*arguments, **settings):
        raise KeyboardInterrupt

    monkeypatch.setattr("sparse_adapt.stages.runner.train", interrupt)
    monkeypatch.chdir(tmp_path)
    words = ["warmup", "--model", extended, "--corpus", zorvex_collection, "-o", "my model"]
    done = sparse_adapt(*words)
    assert done.status == 130
    last = done.err.splitlines()[-1]
    resumed = f"sparse-adapt warmup --model {extended} --corpus {zorvex_collection} -o 'my model' --resume"
    assert last == f"stopped; go on with: {resumed}"
    assert not (tmp_path / "my model").exists()


def test_an_interrupted_look_needs_no_going_on(sparse_adapt, monkeypatch):
    def interrupt(source):
        raise KeyboardInterrupt

    monkeypatch.setattr("sparse_adapt.collection.arguments.read_documents", interrupt)
    done = sparse_adapt("terms", "gatrocraptic")
    assert (done.status, done.err.splitlines()[-1]) == (130, "stopped; nothing was written")


# -- the flow ---------------------------------------------------------------------------------------


@pytest.mark.plugins("engines")
def test_the_whole_flow(sparse_adapt, tmp_path, monkeypatch, tiny_model, zorvex_collection):
    """Every command from terms to encoded vectors; each says what it wrote and what to run next."""
    monkeypatch.chdir(tmp_path)
    model, corpus, quick = str(tiny_model), str(zorvex_collection), ("--epochs", "1", "--device", "cpu")

    ranked = sparse_adapt("terms", corpus, "--model", model, "--top", "3", "--json")
    assert ranked.status == 0
    assert {"term", "category", "gain", "pieces", "occurrences", "documents"} <= set(
        json.loads(ranked.out)[0]
    )
    flow = [
        (["terms", corpus, "--model", model, "--top", "3", "-o", "t.json"], "t.json", "extend"),
        (["extend", "--model", model, "--terms", f"{corpus}/terms.json", "-o", "1"], "1", "warmup"),
        (["warmup", "--model", "1", "--corpus", corpus, "-o", "2", *quick], "2", "dictionary"),
        (
            [
                *("dictionary", "--model", "2", "--glossary", f"{corpus}/dictionary.jsonl", "-o", "3"),
                *("--labeller", "none", *quick),
            ],
            "3",
            "distill",
        ),
        (
            [
                *("distill", "--model", "3", "--candidates", corpus, "--corpus", corpus, "-o", "4"),
                *("--labeller", "none", *quick),
            ],
            "4",
            "evaluate",
        ),
        (["encode", "--model", "4", "--corpus", corpus, "-o", "vectors"], "vectors", "index"),
        (
            ["export", "anserini", "--model", "4", "--corpus", corpus, "--queries", corpus, "-o", "impacts"],
            "impacts",
            "index",
        ),
    ]
    for words, written, following in flow:
        done = sparse_adapt(*words)
        assert done.status == 0, (words, done.err)
        assert Path(written).exists(), words
        assert f"wrote {written} (" in done.err
        next_lines = done.err.split("\nnext:\n")[1].splitlines()
        assert next_lines[0].startswith(f"  sparse-adapt {following} "), next_lines
    assert json.loads(Path("4/vocabulary.json").read_text())["new_tokens"][0]["term"] == "zorvex"
    assert len(Path("impacts/queries.tsv").read_text().splitlines()) >= 1
    # the file that `terms` wrote is one that `extend` takes
    assert sparse_adapt("extend", "--model", model, "--terms", "t.json", "-o", "5").status == 0
    # `dictionary` found the corpus that the warm-up had read
    assert json.loads(Path("3/stage.json").read_text())["files"]["corpus"]["path"] == corpus


def test_tensorboard_scalars_are_written_when_asked(sparse_adapt, tmp_path, extended, zorvex_collection):
    words = ["--model", extended, "--corpus", zorvex_collection, "--epochs", "1", "--device", "cpu"]
    assert sparse_adapt("warmup", *words, "-o", tmp_path / "x", "--tensorboard").status == 0
    assert list((tmp_path / "x" / "tensorboard").glob("events.*"))
    assert sparse_adapt("warmup", *words, "-o", tmp_path / "y").status == 0
    assert not (tmp_path / "y" / "tensorboard").exists()


def test_check_counts_what_a_folder_holds(sparse_adapt, zorvex_collection):
    done = sparse_adapt("check", zorvex_collection, "--json")
    judged = {"judgements of test": 7, "judgements of train": 8}
    counts = {"documents": 12, "queries": 6, **judged, "candidates": 3, "terms": 1, "dictionary": 1}
    assert json.loads(done.out) == counts


# -- JSON -------------------------------------------------------------------------------------------

MEASURES = {"ndcg@10", "mrr@10", "map", "recall@100", "nonzero_document", "nonzero_query"}


def test_evaluate_prints_the_measures(sparse_adapt, tiny_model, extended, zorvex_collection):
    words = ["evaluate", "--model", extended, "--collection", zorvex_collection, "--json"]
    alone = json.loads(sparse_adapt(*words).out)
    assert set(alone["model"]) >= MEASURES
    assert "baseline" not in alone
    content = json.loads(sparse_adapt(*words, "--baseline", tiny_model).out)
    for part in ("model", "baseline", "difference"):
        assert set(content[part]) >= MEASURES, part
    assert content["model"] == alone["model"]
    for measure in MEASURES:
        difference = content["model"][measure] - content["baseline"][measure]
        assert content["difference"][measure] == pytest.approx(difference)
        tested = not measure.startswith("nonzero")
        assert (measure in content["p_value"]) == tested and content["p_value"].get(measure, 1.0) <= 1


def test_diagnose_in_json_has_what_the_tables_show(sparse_adapt, extended, zorvex_collection):
    words = ["diagnose", "Zorvex", "--model", extended, "--corpus", zorvex_collection]
    content = json.loads(sparse_adapt(*words, "--json").out)
    assert (content["model"], content["collection"]) == (str(extended), str(zorvex_collection))
    assert {"vocabulary", "logits", "weights", "ranking", "next_steps"} <= set(content)
    shown = sparse_adapt(*words).out
    assert content["vocabulary"]["tokens"][0] in shown
    for heading in ("1  Vocabulary", "2  Logits", "3  Weight", "4  Ranking", "5  What to do next"):
        assert heading in shown


def test_tokens_in_brackets_are_shown(sparse_adapt, tiny_model, zorvex_collection):
    """Rich would take them for markup and delete them."""
    shown = sparse_adapt("diagnose", "[PAD]", "--model", tiny_model, "--corpus", zorvex_collection)
    assert shown.status == 0, shown.err
    assert "[PAD]" in shown.out


# -- with nothing named -----------------------------------------------------------------------------


def test_diagnose_before_any_run_shows_the_base_model(sparse_adapt, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = sparse_adapt("diagnose", "Gatrocraptic", "--json")
    assert json.loads(done.out)["model"] == "splade-tiny"
    assert json.loads(done.out)["vocabulary"]["single"] is False
    assert done.err.splitlines()[-2:] == ["next:", "  sparse-adapt demo"]


def test_diagnose_and_explain_take_the_latest_run(
    sparse_adapt, tmp_path, monkeypatch, extended, zorvex_collection
):
    monkeypatch.chdir(tmp_path)
    run = tmp_path / "runs" / "mine"
    run.mkdir(parents=True)
    (run / "1-extend").symlink_to(extended)
    (run / "report.json").write_text(json.dumps({"final": "1-extend", "corpus": str(zorvex_collection)}))
    for words in (["diagnose", "zorvex"], ["explain", "who owns zorvex"]):
        done = sparse_adapt(*words, "--json")
        content = json.loads(done.out)
        assert (content["model"], content["collection"]) == ("runs/mine/1-extend", str(zorvex_collection))
        assert "demo" not in done.err


# -- without an index -------------------------------------------------------------------------------


def test_search_needs_no_index(sparse_adapt, tmp_path, monkeypatch, extended, zorvex_collection):
    monkeypatch.chdir(tmp_path)
    model, query = str(extended), "nightly backup of the database"
    encoded = sparse_adapt(
        "encode", "--model", model, "--corpus", zorvex_collection, "-o", "v", "--shard", "5"
    )
    assert encoded.status == 0, encoded.err
    explained = sparse_adapt(
        "explain", query, "--model", model, "--corpus", zorvex_collection, "--top", "3", "--json"
    )
    matches = json.loads(explained.out)["matches"]
    for source in (["--vectors", "v"], ["--corpus", str(zorvex_collection)]):
        found = sparse_adapt("search", query, "--model", model, *source, "--top", "3", "--json")
        results = json.loads(found.out)["results"]
        assert [row["rank"] for row in results] == [1, 2, 3]
        assert [row["document_id"] for row in results] == [row["document_id"] for row in matches]
        assert [row["score"] for row in results] == pytest.approx([row["score"] for row in matches], rel=1e-4)
    shown = sparse_adapt("search", query, "--model", model, "--vectors", "v")
    assert "rank" in shown.out and "impact" not in shown.out
    wrong = sparse_adapt("search", query, "--model", "splade-tiny", "--vectors", "v")
    assert (wrong.status, len(wrong.errors)) == (2, 1)
    assert "was encoded by another model" in wrong.err


def test_search_takes_many_queries_and_writes_a_run(
    sparse_adapt, tmp_path, monkeypatch, extended, zorvex_collection
):
    monkeypatch.chdir(tmp_path)
    files = ["--model", extended, "--corpus", zorvex_collection, "--queries", zorvex_collection, "--top", "3"]
    content = json.loads(sparse_adapt("search", *files, "--json").out)
    queries = list(read_queries(zorvex_collection))
    assert [each["query_id"] for each in content["queries"]] == [query.query_id for query in queries]
    written = sparse_adapt("search", *files, "--run", "found.run")
    assert written.status == 0, written.err
    run = read_run(tmp_path / "found.run")
    for each in content["queries"]:
        names = [row["document_id"] for row in each["results"]]
        assert list(run.get(each["query_id"], {})) == names
        assert all(row["snippet"].startswith(row["title"]) for row in each["results"])


def test_search_shows_how_documents_begin(sparse_adapt, extended, zorvex_collection):
    words = ["search", "nightly backup", "--model", extended, "--corpus", zorvex_collection, "--top", "1"]
    first = json.loads(sparse_adapt(*words, "--json").out)["results"][0]
    assert first["snippet"]
    assert first["snippet"][:20] in sparse_adapt(*words).out


# -- Lucene -----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_index_and_search(sparse_adapt, tmp_path, monkeypatch, zorvex_collection):
    monkeypatch.chdir(tmp_path)
    model, corpus = "splade-tiny", zorvex_collection
    assert sparse_adapt("encode", "--model", model, "--corpus", corpus, "-o", "vectors").status == 0
    built = sparse_adapt("index", "--vectors", "vectors", "-o", "index")
    assert built.status == 0, built.err
    assert "next:" not in built.err  # the base model says no corpus, so there is no query to propose
    query = "nightly backup of the database"
    searched = sparse_adapt("search", query, "--model", model, "--index", "index", "--top", "2", "--json")
    assert searched.status == 0, searched.err
    found = json.loads(searched.out)
    exact = json.loads(
        sparse_adapt("explain", query, "--model", model, "--corpus", corpus, "--top", "2", "--json").out
    )
    assert [row["document_id"] for row in found["results"]] == [
        row["document_id"] for row in exact["matches"]
    ]
    for row, match in zip(found["results"], exact["matches"], strict=True):
        assert row["score"] == pytest.approx(match["score"], rel=0.02)
    wrong = sparse_adapt("search", query, "--model", model, "--index", "vectors")
    assert (wrong.status, len(wrong.errors)) == (2, 1)


def test_diagnose_without_a_term_shows_the_whole_model(sparse_adapt, extended, tiny_model, zorvex_collection):
    words = ["diagnose", "--model", extended, "--corpus", zorvex_collection]
    shown = sparse_adapt(*words, "--baseline", tiny_model)
    assert "New tokens" in shown.out
    assert "Drift" in shown.out
    assert f"diagnose zorvex --model {extended}" in " ".join(shown.err.split())
    content = json.loads(sparse_adapt(*words, "--json").out)
    assert [token["token"] for token in content["usage"]["tokens"]] == ["zorvex"]
    assert content["drift"] is None


@pytest.mark.plugins("research")
@pytest.mark.parametrize(
    ("words", "first"),
    [(["run", "--template"], "# A run file"), (["evaluate", "--template"], "# A suite")],
)
def test_a_template_goes_to_standard_output(sparse_adapt, words, first):
    shown = sparse_adapt(*words)
    assert shown.status == 0
    assert shown.out.startswith(first)
    tomllib.loads(shown.out)
