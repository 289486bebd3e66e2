"""Term packs: put in and taken out again without a trace, in any order; and every file and model that is refused."""

import json
import re
import shutil
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
import torch
from conftest import refused
from families import build
from formed import two_encoders, written
from safetensors import safe_open
from safetensors.torch import load_file, save_file

import sparse_adapt as sa
from sparse_adapt.errors import ConfigError, InputError, ModelError, OutputError
from sparse_adapt.files.marker import files_at
from sparse_adapt.model.query_side import QuerySide
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.plugins.packs.base import checksum_of_weights, difference, rows_at, rows_of
from sparse_adapt.plugins.packs.pack import HEADER, Header, checksum_of, read_pack
from sparse_adapt.plugins.packs.putting import open_model
from sparse_adapt.retrieve.encode import encode
from sparse_adapt.stages.record import extended_from

ONE, OTHER = ["kubectl", "zorvex-pool", "max_connections"], ["Zorvex", "quux", "c++"]
TEXTS = [
    "we use kubectl and the zorvex-pool; kubectls too",
    "quux max_connections, ZORVEX",
    "the server refuses",
    "",
    "zorvexs c++ quuxes",
]
SHORT = {"steps": 2, "batch_size": 2, "device": "cpu"}
KINDS = ("tied", "untied", "spare", "table")


def make_base(kind: str, tiny_model: Path, folder: Path) -> Path:
    """A base model as sparse-adapt writes it: of one parameter for both rows, of two, with spare rows, with a table."""
    place = folder / "base"
    if kind == "untied":
        sa.load(build(folder / "raw", "bert", tied=False), device="cpu").save(place)
    elif kind == "spare":
        sa.load(build(folder / "raw", "roberta", spare=4), device="cpu").save(place)
    else:
        model = sa.load(tiny_model, device="cpu")
        if kind == "table":
            weights = np.linspace(0.0, 2.0, model.encoder.vocabulary_size).astype(np.float32)
            model.encoder.query_side = QuerySide(weights, 12)
        model.save(place)
    return place


def teach(base: Path, folder: Path, terms: list[str], seed: int) -> Path:
    """A model with new terms whose rows alone were taught, here by chance, and with the record of its extension."""
    model, random = sa.load(base, device="cpu"), torch.Generator().manual_seed(seed)
    model.extend(terms)
    ids = [token.token_id for token in model.encoder.new_tokens]
    for kind, rows in rows_of(model.encoder).items():
        step = torch.rand(rows[ids].shape, generator=random)
        rows[ids] += 2.0 * step + 0.5 if kind == "bias" else step
    return model.save(folder)


@pytest.fixture(scope="module", params=KINDS)
def places(request, tiny_model, tmp_path_factory) -> Path:
    """A base, two models made of it, a pack of each (one.pack, other.pack), and the base with packs. Read only."""
    folder = tmp_path_factory.mktemp(request.param)
    base = make_base(request.param, tiny_model, folder)
    for seed, (name, terms) in enumerate({"one": ONE, "other": OTHER}.items()):
        teach(base, folder / name, terms, seed)
        sa.pack(folder / name, folder / f"{name}.pack", base=base, author="the tests")
    sa.unpack(folder / "other.pack", base, folder / "with-other")
    sa.unpack([folder / "one.pack", folder / "other.pack"], base, folder / "with-both")
    return folder


@pytest.fixture(scope="module")
def tied(tiny_model, tmp_path_factory) -> Path:
    """The same of the tied model alone."""
    folder = tmp_path_factory.mktemp("packs")
    base = make_base("tied", tiny_model, folder)
    teach(base, folder / "one", ONE, 0)
    sa.pack(folder / "one", folder / "one.pack", base=base, author="the tests")
    sa.unpack(folder / "one.pack", base, folder / "with")
    return folder


def files(folder: Path, *without: str) -> dict[str, bytes]:
    """All that loading reads of a model folder."""
    held = {path.relative_to(folder).as_posix(): path.read_bytes() for path in files_at(folder)}
    return {name: content for name, content in held.items() if name.split("/")[0] not in without}


# -- in and out -----------------------------------------------------------------------------------


def test_what_was_put_in_is_the_taught_model_and_taken_out_it_leaves_no_trace(places, tmp_path):
    sa.unpack(places / "one.pack", places / "base", tmp_path / "with")
    assert files(tmp_path / "with", "packs") == files(places / "one")
    done = sa.unpack([], tmp_path / "with", tmp_path / "without", remove=["one"])
    without, base = files(tmp_path / "without"), files(places / "base")
    for notes in [name for name in base if name.endswith("tokenizer_config.json")]:
        read = {
            **json.loads(base.pop(notes)),
            "truncation_side": "right",
        }  # transformers notes a default it has read
        assert json.loads(without.pop(notes)) == read
    assert without == base
    assert done.terms == [] and not (tmp_path / "without" / "stage.json").exists()


def test_in_either_order_the_same_texts_have_the_same_vectors(places, tmp_path):
    sa.unpack(places / "one.pack", places / "with-other", tmp_path / "other-one")
    base, first, second = (
        SparseEncoder.load(place) for place in (places / "base", places / "with-both", tmp_path / "other-one")
    )
    assert sorted(first.tokens) == sorted(second.tokens)
    same = [second.tokenizer.get_vocab()[name] if name else row for row, name in enumerate(first.tokens)]
    for side in ("document", "query"):
        found = encode(first, TEXTS, side).toarray()
        np.testing.assert_array_equal(found, encode(second, TEXTS, side).toarray()[:, same])
        assert (found[:, len(base.tokenizer) :] > 0).any()
    for kind, rows in rows_of(base).items():
        for held in (rows_of(first)[kind], rows_of(second)[kind]):
            assert torch.equal(held[: len(base.tokenizer)], rows[: len(base.tokenizer)])
    sa.unpack([], tmp_path / "other-one", tmp_path / "again", remove=["one"])
    assert files(tmp_path / "again") == files(places / "with-other")


def test_a_pack_holds_its_rows_alone(places):
    pack, taught = read_pack(places / "one.pack"), SparseEncoder.load(places / "one")
    held = rows_at(taught, [token.token_id for token in taught.new_tokens])
    assert pack.rows.keys() == held.keys() and all(torch.equal(pack.rows[kind], held[kind]) for kind in held)
    header = safe_open(places / "one.pack", "pt").metadata()[HEADER]
    values = sum(rows.numel() for rows in held.values())
    assert (places / "one.pack").stat().st_size < 4 * values + 2 * len(header) + 500


def test_old_texts_are_cut_as_before_once_packs_are_out(places, tmp_path):
    within = SparseEncoder.load(places / "with-both")
    for token in within.new_tokens:
        assert within.tokenize([f"the {token.term} of"])[0].count(token.token_id) == 1, token
    sa.unpack([], places / "with-both", tmp_path / "without", remove=["one", "other"])
    base, without = SparseEncoder.load(places / "base"), SparseEncoder.load(tmp_path / "without")
    assert without.tokenize(TEXTS) == base.tokenize(TEXTS)
    assert type(without.tokenizer) is type(base.tokenizer)
    assert without.tokenizer.backend_tokenizer.to_str() == base.tokenizer.backend_tokenizer.to_str()


@pytest.mark.slow
def test_the_real_model_is_what_it_was(tmp_path):
    base = sa.load("splade-tiny", device="cpu")
    teach("splade-tiny", tmp_path / "one", ONE, 0)
    sa.pack(tmp_path / "one", tmp_path / "one.pack", base="splade-tiny")
    assert (tmp_path / "one.pack").stat().st_size < 5_000
    assert sa.packs(tmp_path / "one.pack").headers["one"].base.hub_id == "rasyosef/splade-tiny"
    sa.unpack(tmp_path / "one.pack", "splade-tiny", tmp_path / "with")
    sa.unpack([], tmp_path / "with", tmp_path / "without", remove=["one"])
    without = sa.load(tmp_path / "without", device="cpu")
    assert not difference(without.encoder, base.encoder) and not difference(base.encoder, without.encoder)
    assert (base.encode(TEXTS) != without.encode(TEXTS)).nnz == 0


# -- what a pack says, and what is chosen -----------------------------------------------------------


def test_a_pack_says_what_taught_it_who_made_it_and_which_base_it_fits(tied):
    found = sa.packs(tied / "one.pack")
    header = found.headers["one"]
    assert (header.made.author, header.base.name, header.base.tokens) == ("the tests", "base", 200)
    assert header.base.sha256 == checksum_of_weights(SparseEncoder.load(tied / "base"))
    assert [stage["stage"] for stage in header.made.stages] == ["extend"]
    assert found.terms == ONE and "kubectl" in str(found) and "the tests" in str(found)
    assert sa.packs(tied / "with").to_dict()["packs"] == found.to_dict()["packs"]
    assert str(tied) not in header.model_dump_json()


def test_some_terms_alone_and_in_any_case(tied, tmp_path):
    done = sa.pack(
        tied / "one", tmp_path / "some.pack", base=tied / "base", terms=["KUBECTL", "max_connections"]
    )
    assert done.terms == ["kubectl", "max_connections"]
    unpacked = sa.unpack(tmp_path / "some.pack", tied / "base", tmp_path / "with")
    assert unpacked.model.terms == done.terms
    text = "kubectl sets max_connections of the server"
    alone, whole = by_name(tmp_path / "with", [text])[0], by_name(tied / "one", [text])[0]
    assert alone == {token: weight for token, weight in whole.items() if token != "zorvex-pool"}


def test_the_stages_since_the_base_are_told_and_a_body_that_moved_is_refused(
    tied, tmp_path, zorvex_collection
):
    sa.train("extend", tied / "base", out=tmp_path / "extended", terms=["zorvex"])
    sa.train("warmup", tmp_path / "extended", zorvex_collection, out=tmp_path / "warm", **SHORT)
    done = sa.pack(tmp_path / "warm", tmp_path / "z.pack", base=tied / "base")
    assert [stage["stage"] for stage in done.header.made.stages] == ["extend", "warmup"]
    assert done.header.made.stages[1]["settings"]["steps"] == 2
    all_of_it = {**SHORT, "train": "all", "learning_rate": 1e-2}
    sa.train("warmup", tmp_path / "warm", zorvex_collection, out=tmp_path / "moved", **all_of_it)
    with pytest.raises(ModelError, match=r"isn't what it is in .*base.*--train new"):
        sa.pack(tmp_path / "moved", tmp_path / "moved.pack", base=tied / "base")
    assert not (tmp_path / "moved.pack").exists()
    sa.train("extend", tmp_path / "moved", out=tmp_path / "more", terms=["kubectl"])
    later = sa.pack(tmp_path / "more", tmp_path / "moved.pack", base=tmp_path / "moved")
    assert later.terms == ["kubectl"]
    assert [stage["stage"] for stage in later.header.made.stages] == ["extend"]


def test_the_stages_of_an_adaptation_are_told_one_by_one(tied, tmp_path):
    shutil.copytree(tied / "one", tmp_path / "adapted")
    record = json.loads((tmp_path / "adapted" / "stage.json").read_text())
    stages = [{"stage": name, "settings": {}, "files": {}} for name in ("extend", "preserve")]
    adapted = {**record, "stage": "adapt", "stages": stages, "command": "sparse-adapt adapt"}
    (tmp_path / "adapted" / "stage.json").write_text(json.dumps(adapted))
    done = sa.pack(tmp_path / "adapted", tmp_path / "a.pack", base=tied / "base")
    assert [each["stage"] for each in done.header.made.stages] == ["extend", "preserve"]


def test_a_model_that_holds_packs_is_a_base_too(tied, tmp_path):
    """Its terms and its base are told apart: the new pack fits the base without the first one."""
    teach(tied / "with", tmp_path / "more", ["quux"], 3)
    done = sa.pack(tmp_path / "more", tmp_path / "quux.pack", base=tied / "with", terms=["quux"])
    assert done.header.base == sa.packs(tied / "one.pack").headers["one"].base
    sa.unpack(tmp_path / "quux.pack", tied / "base", tmp_path / "quux")
    both = sa.unpack(tmp_path / "quux.pack", tied / "with", tmp_path / "both")
    assert both.terms == [*ONE, "quux"]
    assert [name for name, _ in both.packs] == ["one", "quux"]


def test_stages_go_on_from_the_base_that_packs_were_put_into(tied):
    assert extended_from(str(tied / "with")) == str((tied / "base").resolve())


def test_a_newer_pack_takes_the_place_of_an_older_one(tied, tmp_path):
    teach(tied / "base", tmp_path / "newer", ["kubectl"], 4)
    sa.pack(tmp_path / "newer", tmp_path / "two.pack", base=tied / "base")
    done = sa.unpack(tmp_path / "two.pack", tied / "with", tmp_path / "out", remove=["one"])
    assert done.terms == ["kubectl"]
    sa.unpack(tmp_path / "two.pack", tied / "base", tmp_path / "alone")
    assert files(tmp_path / "out") == files(tmp_path / "alone")


# -- what has to be encoded again -------------------------------------------------------------------


def by_name(folder: Path, texts: list[str]) -> list[dict[str, float]]:
    """Each text's weights by the names of its tokens."""
    encoder = SparseEncoder.load(folder)
    vectors, names = encode(encoder, texts, "document"), encoder.tokens
    return [{names[column]: row.data[i] for i, column in enumerate(row.indices)} for row in vectors]


@pytest.mark.parametrize("windows", [None, 8])
def test_documents_to_encode_again_are_those_with_another_vector(tied, tmp_path, twelve_documents, windows):
    base = sa.load(tied / "base", device="cpu", windows=windows, overlap=2 if windows else None)
    base.save(tmp_path / "base")
    documents = [*twelve_documents, sa.Document("d13", "kubectl")]
    done = sa.unpack(tied / "one.pack", tmp_path / "base", tmp_path / "with", corpus=documents)
    texts = [document.full_text for document in documents]
    before, after = by_name(tmp_path / "base", texts), by_name(tmp_path / "with", texts)
    changed = [each.document_id for each, a, b in zip(documents, before, after, strict=True) if a != b]
    assert list(done.encode_again) == changed
    assert {"d02", "d09", "d13"} <= set(changed) < {each.document_id for each in documents}
    assert (tmp_path / "with" / "reencode.txt").read_text().split() == changed
    back = sa.unpack([], tmp_path / "with", tmp_path / "without", remove=["one"], corpus=documents)
    assert back.encode_again == done.encode_again


def test_tokens_under_another_id_count_as_changed(tied, tmp_path):
    """`quux` joins the vocabulary, before `zorvex-pool`, which is matched whole: engines may know tokens by ids."""
    teach(tied / "base", tmp_path / "quux", ["quux"], 3)
    sa.pack(tmp_path / "quux", tmp_path / "quux.pack", base=tied / "base")
    done = sa.unpack(
        tmp_path / "quux.pack", tied / "with", tmp_path / "both", corpus=["the zorvex-pool", "quux"]
    )
    assert len(done.encode_again) == 2


def test_exact_words_stay_while_packs_come_and_go(tied, tmp_path, twelve_documents):
    words = sa.add_words(tied / "base", twelve_documents, tmp_path / "words", device="cpu").words.settings
    sa.unpack(tied / "one.pack", tmp_path / "words", tmp_path / "with")
    sa.unpack([], tmp_path / "with", tmp_path / "without", remove=["one"])
    for name in ("with", "without"):
        assert SparseEncoder.load(tmp_path / name).words.settings == words
    sa.pack(tmp_path / "with", tmp_path / "again.pack", base=tied / "base")
    assert read_pack(tmp_path / "again.pack").terms == read_pack(tied / "one.pack").terms


# -- refused --------------------------------------------------------------------------------------


def test_models_that_cannot_be_packed(tied, tmp_path):
    base, out = tied / "base", tmp_path / "x.pack"
    for model, named, problem in [
        (base, base, "has no term that .*base lacks"),
        (tied / "one", tied / "one", "has no term that .*one lacks"),
        (tied / "one", tmp_path / "nowhere", "nowhere"),
    ]:
        with pytest.raises(ModelError, match=problem):
            sa.pack(model, out, base=named)
    with pytest.raises(ConfigError, match="unknown term 'kubectls'; did you mean 'kubectl'"):
        sa.pack(tied / "one", out, base=base, terms=["kubectls"])
    model = sa.load(base)
    model.extend(["zorvex"])
    with pytest.raises(ModelError, match="save it first"):
        sa.pack(model, out, base=base)


@pytest.mark.parametrize("part", ["rows", "bias", "body", "token_scales", "form"])
def test_whatever_moved_is_named(tied, tmp_path, part):
    from dataclasses import replace

    model = sa.load(tied / "one")
    encoder = model.encoder
    with torch.no_grad():
        if part == "rows":
            encoder.input_rows[17] += 1e-6
        elif part == "bias":
            encoder.output_bias[17] = -0.5
        elif part == "body":
            next(iter(encoder.masked_lm.bert.encoder.parameters())).add_(1e-6)
    if part == "token_scales":
        encoder.token_scales = np.full(encoder.vocabulary_size, 0.5, np.float32)
    if part == "form":
        encoder.form = replace(encoder.form, activation="log1p_relu")
    model.save(tmp_path / "moved")
    token = SparseEncoder.load(tied / "base").tokens[17]
    wanted = {
        "rows": f"input of the token '{token}'",
        "bias": f"bias of the token '{token}'",
        "body": "bert.encoder.layer.0",
        "token_scales": "token_scales.json",
        "form": "form",
    }
    with pytest.raises(ModelError, match=wanted[part].replace("'", ".")):
        sa.pack(tmp_path / "moved", tmp_path / "x.pack", base=tied / "base")


def edited(pack: Path, place: Path, **changes) -> Path:
    """A pack with another header, whose rows are as they were."""
    header = {**json.loads(safe_open(pack, "pt").metadata()[HEADER]), **changes}
    save_file(load_file(pack), place, {HEADER: json.dumps(header)})
    return place


def test_files_that_are_no_pack_for_this_model(tied, tmp_path):
    pack, base, out = tied / "one.pack", tied / "base", tmp_path / "out"
    content = pack.read_bytes()
    (tmp_path / "flipped.pack").write_bytes(content[:-3] + bytes([content[-3] ^ 1]) + content[-2:])
    (tmp_path / "cut.pack").write_bytes(content[:-40])
    (tmp_path / "text.pack").write_text("kubectl")
    (tmp_path / "empty.pack").write_bytes(b"")
    save_file(load_file(pack), tmp_path / "bare.pack")
    edited(pack, tmp_path / "newer.pack", format_version=3, more="of it")
    edited(pack, tmp_path / "lacking.pack", made=None)
    tokens = read_pack(pack).header.model_dump()["tokens"]
    edited(pack, tmp_path / "renamed.pack", tokens=[{**each, "term": "x"} for each in tokens])
    edited(pack, tmp_path / "twice.pack", tokens=[*tokens, *tokens])
    edited(pack, tmp_path / "beyond.pack", tokens=[{**each, "pieces": [200]} for each in tokens])
    problems = {
        "nowhere.pack": "no such file",
        "flipped.pack": "by its checksum",
        "renamed.pack": "by its checksum",
        "twice.pack": "one twice",
        "beyond.pack": "no token of its base",
        "cut.pack": "no term pack that can be read",
        "text.pack": "no term pack that can be read",
        "empty.pack": "no term pack that can be read",
        "bare.pack": "no header of a term pack",
        "newer.pack": "made by a newer sparse-adapt.*pip install -U",
        "lacking.pack": "made: ",
    }
    for name, problem in problems.items():
        with pytest.raises(InputError, match=problem):
            sa.unpack(tmp_path / name, base, out)
    with pytest.raises(InputError, match=r"one.pack: fits base .200 tokens.*--model"):
        sa.unpack(pack, build(tmp_path / "bert", "bert"), out)
    with pytest.raises(InputError, match="fits base"):
        sa.unpack(pack, tied / "one", out)
    shutil.copy(pack, tmp_path / "two.pack")
    with pytest.raises(InputError, match="has its term 'kubectl' as well"):
        sa.unpack([pack, tmp_path / "two.pack"], base, out)
    with pytest.raises(InputError, match="has its term 'kubectl' as well"):
        sa.unpack(tmp_path / "two.pack", tied / "with", out)
    with pytest.raises(InputError, match="called one as well"):
        sa.unpack(pack, tied / "with", out)
    with pytest.raises(ConfigError, match="unknown pack 'on'; did you mean 'one'"):
        sa.unpack([], tied / "with", out, remove=["on"])
    with pytest.raises(ConfigError, match="holds no term pack"):
        sa.unpack([], base, out, remove=["one"])
    with pytest.raises(OutputError, match="is what this command reads"):
        sa.unpack([], tied / "with", tied / "with", remove=["one"], overwrite=True)
    assert not out.exists() and not out.with_name("out.partial").exists()


def made_by_hand(pack: Path, path: Path, rows=None, made=None) -> Path:
    """A pack whose header and rows somebody else put together, with a checksum that fits where there can be one."""
    sound = read_pack(pack)
    header = sound.header.model_dump()
    header["made"] = {**header["made"], **(made or {})}
    rows = {**sound.rows, **(rows or {})}
    with suppress(TypeError, ValueError, RuntimeError):
        header["sha256"] = checksum_of(Header.model_construct(**{**header, "sha256": ""}), rows)
    save_file(rows, path, {"pack": json.dumps(header)})
    return path


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (
            {"rows": {"input": torch.zeros(3, 16, dtype=torch.bfloat16)}},
            "no rows of float32 .bfloat16, 2 dim",
        ),
        ({"rows": {"input": torch.zeros(3, 16, dtype=torch.float8_e4m3fn)}}, "no rows of float32"),
        ({"rows": {"input": torch.zeros(3, 16, dtype=torch.complex64)}}, "no rows of float32"),
        ({"rows": {"bias": torch.tensor(1.0)}}, "'bias' are no rows of float32 .float32, 0 dim"),
        ({"rows": {"bias": torch.zeros(3, 1)}}, "'bias' are no rows of float32"),
        ({"rows": {"more": torch.zeros(3)}}, "'more' are no rows of float32"),
        ({"rows": {"bias": torch.zeros(4)}}, "bias isn't a row of numbers for each"),
        ({"rows": {"input": torch.zeros(3, 7)}}, "aren't of its base's shapes"),
        ({"made": {"stages": [{}]}}, "a stage has a name"),
        ({"made": {"stages": [{"stage": 7}]}}, "a stage has a name"),
        ({"made": {"stages": [{"stage": "extend", "steps": "many"}]}}, "whole steps where it has any"),
        ({"made": {"stages": [{"stage": "extend", "steps": True}]}}, "whole steps where it has any"),
        ({"made": {"stages": [{"stage": "extend", "steps": 1.5}]}}, "whole steps where it has any"),
        ({"made": {"stages": 7}}, "made.stages: "),
        ({"made": {"at": "yesterday"}}, "made.at: "),
    ],
)
@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")
def test_a_pack_that_somebody_else_put_together_is_refused_in_one_line(
    sparse_adapt, tied, tmp_path, change, problem
):
    pack = made_by_hand(tied / "one.pack", tmp_path / "hand.pack", **change)
    with pytest.raises(InputError, match=problem) as caught:
        sa.unpack(pack, tied / "base", tmp_path / "out")
    assert "\n" not in str(caught.value)
    if "base's shapes" not in problem:
        assert re.search(problem, refused(sparse_adapt("packs", pack)))


@pytest.mark.parametrize("row", [5, -1])
@pytest.mark.parametrize("moved", ["with", "base"])
def test_packs_leave_a_model_only_while_it_and_its_base_are_what_they_were(tied, tmp_path, moved, row):
    for name in ("with", "base"):
        shutil.copytree(tied / name, tmp_path / name)
    listed = tmp_path / "with" / "packs" / "packs.json"
    held = json.loads(listed.read_text())
    listed.write_text(json.dumps({**held, "model": str(tmp_path / "base")}))
    (tmp_path / "with" / "sparse-adapt.json").unlink()  # the edit above is meant
    encoder = SparseEncoder.load(tmp_path / moved)
    with torch.no_grad():
        encoder.input_rows[len(encoder.tokenizer) - 1 if row < 0 else row] += 1.0
    encoder.save(tmp_path / moved)
    with pytest.raises(ModelError, match=rf"{moved}: isn't what it was when (its )?packs were put in"):
        sa.unpack([], tmp_path / "with", tmp_path / "out", remove=["one"])
    shutil.rmtree(tmp_path / "base")
    with pytest.raises(ModelError):
        sa.unpack([], tmp_path / "with", tmp_path / "out", remove=["one"])


def test_a_model_of_two_encoders_takes_none(tied, tmp_path):
    folder = written(
        two_encoders(build(tmp_path / "a", "bert"), build(tmp_path / "b", "distilbert")), tmp_path / "two"
    )
    with pytest.raises(ModelError, match="a second model reads queries"):
        sa.unpack(tied / "one.pack", folder, tmp_path / "out")


def test_the_base_is_known_by_its_values_and_its_vocabulary(tied, tmp_path):
    encoder = SparseEncoder.load(tied / "base")
    before = checksum_of_weights(encoder)
    assert open_model(tied / "with").sha256 == before
    encoder.save(tmp_path / "copy")
    assert checksum_of_weights(SparseEncoder.load(tmp_path / "copy")) == before
    with torch.no_grad():
        encoder.output_bias[3] += 1e-6
    assert checksum_of_weights(encoder) != before


# -- commands -------------------------------------------------------------------------------------


def test_commands_end_by_saying_what_follows(sparse_adapt, tied, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    packed = sparse_adapt(
        *("pack", "--model", tied / "one", "--base", tied / "base"),
        *("--terms", "kubectl,max_connections", "-o", "k.pack"),
    )
    assert packed.status == 0 and packed.messages[-2:] == [
        "  sparse-adapt packs k.pack",
        f"  sparse-adapt unpack k.pack --model {tied / 'base'} -o with-terms",
    ]
    again = refused(sparse_adapt("pack", tied / "one", "--base", tied / "base", "-o", "k.pack"))
    assert "already there" in again
    unpacked = sparse_adapt("unpack", "k.pack", "--model", tied / "base", "-o", "with")
    assert unpacked.status == 0 and "encode again the documents that say or activate" in unpacked.out
    listed = sparse_adapt("packs", "with", "--json")
    assert [each["name"] for each in json.loads(listed.out)["packs"]] == ["k"]
    (tmp_path / "corpus.tsv").write_text("1\tkubectl logs\n2\ta saw\n")
    removed = sparse_adapt(
        *("unpack", "--remove", "k", "--model", "with", "-o", "out", "--corpus", "corpus.tsv", "--json")
    )
    ids = json.loads(removed.out)["encode_again"]
    assert "1" in ids and (tmp_path / "out" / "reencode.txt").read_text().split() == ids
    assert "holds no term pack" in sparse_adapt("packs", "out").out
    assert "no term pack that can be read" in refused(sparse_adapt("packs", "corpus.tsv"))
