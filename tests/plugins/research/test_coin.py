"""Coined terms: chosen without judgements, unlike anything, replaced in every form and nowhere else."""

import json
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from wordfreq import zipf_frequency

from sparse_adapt.collection.glossary import Definition, read_dictionary
from sparse_adapt.collection.readers import (
    Document,
    Query,
    read_documents,
    read_queries,
    write_documents,
    write_judgements,
    write_queries,
)
from sparse_adapt.errors import ConfigError, InputError, OutputError
from sparse_adapt.files.place import Place
from sparse_adapt.plugins.research.coin.coining import CoinSettings, read_coined, replace_words
from sparse_adapt.plugins.research.coin.words import (
    Coinage,
    choose_words,
    count_words,
    find_candidates,
    find_families,
    inflect,
    invent_words,
    neighbours,
    words_of,
)

TOPICS = ("plasmid", "ribosome", "vacuole", "mitosis", "cytokine", "nucleus")


@pytest.fixture(scope="session")
def cells(tmp_path_factory):
    """Sixty short texts; six words of biology stand in five of them each, and four are in a query."""
    folder = tmp_path_factory.mktemp("cells") / "cells"
    documents = [
        Document(f"d{number}", f"Text {number} about the weather and what people in town say of it.")
        for number in range(30)
    ]
    for topic in TOPICS:
        many = "mitoses" if topic == "mitosis" else "nuclei" if topic == "nucleus" else f"{topic}s"
        documents += [
            Document(
                f"{topic}-1", f"The {topic}'s wall; {topic.upper()} and {topic}-like parts.", f"{many} here"
            ),
            *(
                Document(f"{topic}-{n}", f"We saw {many} in the water, each {topic} alone.")
                for n in range(2, 6)
            ),
        ]
    write_documents(folder / "corpus.jsonl", documents)
    queries = [Query(f"q-{topic}", f"what do {topic}s do?", "semantic") for topic in TOPICS[:3]]
    queries += [Query("q-m", "Mitosis in water"), Query("q-w", "the weather in town")]
    write_queries(folder / "queries.jsonl", queries)
    judged = {f"q-{topic}": {f"{topic}-1": 1, f"{topic}-2": 1} for topic in TOPICS[:3]}
    write_judgements(folder / "qrels" / "test.tsv", {**judged, "q-m": {"mitosis-1": 2}, "q-w": {"d1": 1}})
    write_judgements(folder / "qrels" / "train.tsv", {"q-w": {"d2": 1}})
    return folder


@pytest.fixture(scope="session")
def coined_cells(tmp_path_factory, cells):
    folder = tmp_path_factory.mktemp("coined") / "cells"
    replace_words(CoinSettings(collection=str(cells), terms=3, seed=1), {"brovid"}, Place(folder))
    return folder


# -- forms ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("base", "forms"),
    [
        ("plasmid", {"plasmid": "", "plasmids": "s", "plasmided": "ed", "plasmiding": "ing"}),
        ("assay", {"assay": "", "assays": "s", "assayed": "ed", "assaying": "ing"}),
        ("pulse", {"pulse": "", "pulses": "s", "pulsed": "ed", "pulsing": "ing"}),
        ("biopsy", {"biopsy": "", "biopsies": "s", "biopsied": "ed", "biopsyed": "ed", "biopsying": "ing"}),
        ("metastasis", {"metastasis": "", "metastasises": "s", "metastases": "s"}),
        ("pool", {"pool": "", "pools": "s", "pooled": "ed", "pooling": "ing"}),
        ("plot", {"plots": "s", "plotted": "ed", "plotting": "ing"}),
        ("nucleus", {"nuclei": "s"}),
        ("ran", {"ran": ""}),
    ],
)
def test_the_forms_of_a_word(base, forms):
    assert forms.items() <= inflect(base).items()


def test_only_forms_that_occur_count_and_none_is_a_base_itself():
    words = {"plasmid", "plasmids", "pulse", "pulsing", "wing"}
    families = find_families(words, sorted(words))
    assert {family.base: set(family.forms) for family in families} == {
        "plasmid": {"plasmid", "plasmids"},
        "pulse": {"pulse", "pulsing"},
        "wing": {"wing"},
    }


COINAGE = Coinage(
    find_families({"plasmid", "plasmids", "metastasis", "metastases"}, ["plasmid", "metastasis"]),
    {"plasmid": "brovid", "metastasis": "zelkun"},
)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("A plasmid; two plasmids.", "A brovid; two brovids."),
        ("Plasmid and PLASMIDS", "Brovid and BROVIDS"),
        (
            "the plasmid's, both plasmids' and a plasmid\u2019s",
            "the brovid's, both brovids' and a brovid\u2019s",
        ),
        ("plasmid-borne, multi-plasmid, my_plasmid_x", "brovid-borne, multi-brovid, my_brovid_x"),
        ("metastasis, metastases", "zelkun, zelkuns"),
        ("plasmidic plasmid2 plásmid xplasmid", "plasmidic plasmid2 plásmid xplasmid"),
        ("", ""),
    ],
)
def test_every_form_keeps_its_case_and_its_ending(text, wanted):
    assert COINAGE.replace(text) == wanted


@given(st.text(alphabet="plasmid PLASMIDs'-_.é1\n", max_size=40))
def test_what_was_replaced_is_gone_and_all_else_stays(text):
    replaced = COINAGE.replace(text)
    assert not COINAGE.bases(replaced)
    if not COINAGE.bases(text):
        assert replaced == text
    rest = [word for word in words_of(text) if word not in COINAGE.form]
    assert [word for word in words_of(replaced) if word not in COINAGE.form.values()] == rest


# -- invented words -----------------------------------------------------------------------------------


def test_invented_words_are_nobodys():
    taken = {"flenvop"}
    words = invent_words(60, taken, np.random.default_rng(0))
    assert words == invent_words(60, taken, np.random.default_rng(0))
    assert words != invent_words(60, taken, np.random.default_rng(1))
    assert len(set(words)) == 60
    for word in words:
        assert re.fullmatch("[bcdfghjklmnprstvwz]+[aeiou]([bcdfgklmnprtvz]+[aeiou]){1,2}[bdgklmnprtv]+", word)
        assert zipf_frequency(word, "en") == 0 and zipf_frequency(f"{word}s", "en") == 0
        assert not set(neighbours(word)) & (set(words) | taken)


def test_the_neighbours_of_a_word():
    near = set(neighbours("ab"))
    assert {"b", "a", "cab", "abc", "acb", "cb", "ac"} <= near
    assert "ab" not in near and "ba" not in near


# -- the choice ---------------------------------------------------------------------------------------


def test_words_of_the_domain_in_enough_documents_and_a_query(cells):
    counts = count_words(document.full_text for document in read_documents(cells))
    found = find_candidates(counts, [query.text for query in read_queries(cells)])
    assert [each.family.base for each in found] == ["mitosis", "plasmid", "ribosome", "vacuole"]
    assert {each.documents for each in found} == {5} and {each.queries for each in found} == {1}


def test_the_choice_is_the_seeds(cells):
    counts = count_words(document.full_text for document in read_documents(cells))
    found = find_candidates(counts, [query.text for query in read_queries(cells)])
    by_seed = {
        tuple(each.family.base for each in choose_words(found, 2, np.random.default_rng(seed)))
        for seed in range(20)
    }
    assert len(by_seed) > 3
    assert all(list(names) == sorted(names) for names in by_seed)


def test_words_of_many_queries_are_likelier(cells):
    counts = count_words(document.full_text for document in read_documents(cells))
    queries = ["plasmid"] * 20 + ["vacuole"]
    found = find_candidates(counts, queries)
    first = [choose_words(found, 1, np.random.default_rng(seed))[0].family.base for seed in range(200)]
    assert first.count("plasmid") > 170  # 20 / 21 of 200 are 190


# -- the collection -----------------------------------------------------------------------------------


def test_documents_say_coined_words_and_queries_real_ones(cells, coined_cells):
    report = read_coined(coined_cells)
    before, after = list(read_documents(cells)), list(read_documents(coined_cells))
    assert [each.document_id for each in before] == [each.document_id for each in after]
    assert (report.documents, report.changed) == (60, 15)
    assert sum(old != new for old, new in zip(before, after, strict=True)) == 15
    for each in report.coined:
        assert each.documents == 5
        assert not any(form in words_of(document.full_text) for form in each.forms for document in after)
        assert (
            sum(each.forms.values()) == 4 + 4 * 2
        )  # one text says it four times, title included; four twice
        first = next(document for document in after if document.document_id == f"{each.word}-1")
        assert first.title == f"{each.coined}s here"
        wanted = f"The {each.coined}'s wall; {each.coined.upper()} and {each.coined}-like parts."
        assert first.text == wanted
    queries = {query.query_id: query for query in read_queries(cells)}
    for query in read_queries(coined_cells):
        assert query.text == queries[query.query_id].text


WORDNET = {
    "data.noun": '  1 a licence\n00000014 03 n 01 plasmid 0 000 | a ring of DNA; "a plasmid in a cell"\n',
    "index.noun": "  1 a licence\nplasmid n 1 1 @ 1 0 00000014\ncell n 1 1 @ 1 0 00000014\n",
}


@pytest.mark.parametrize("form", ["glossary", "wordnet"])
def test_a_glossary_says_what_coined_words_mean_in_coined_words(cells, tmp_path, form):
    source = tmp_path / ("source" if form == "wordnet" else "source.jsonl")
    if form == "wordnet":
        source.mkdir()
        for name, text in WORDNET.items():
            (source / name).write_text(text)
    else:
        entries = {
            "plasmid": "a ring of DNA in a nucleus",
            "Ribosome": "a ribosome of ribosomes",
            "cell": "a room",
        }
        source.write_text(
            "".join(f"{json.dumps({'term': k, 'definition': v})}\n" for k, v in entries.items())
        )
    asked = CoinSettings(collection=str(cells), terms=4, seed=1, glossary=str(source))
    report = replace_words(asked, set(), Place(tmp_path / "out"))
    word = {each.word: each.coined for each in report.coined}
    found = read_dictionary(tmp_path / "out" / "glossary.jsonl")
    assert [each.term for each in found] == [word["plasmid"]], (
        "a definition that says its own word is left out"
    )
    if form == "wordnet":
        assert found[0] == Definition(word["plasmid"], "a ring of DNA", (f"a {word['plasmid']} in a cell",))
    else:
        assert found[0].definition == f"a ring of DNA in a {word.get('nucleus', 'nucleus')}"


def test_a_glossary_of_other_words_is_refused(cells, tmp_path):
    source = tmp_path / "glossary.jsonl"
    source.write_text('{"term": "gatrocraptic", "definition": "something else"}\n')
    asked = CoinSettings(collection=str(cells), terms=3, seed=1, glossary=str(source))
    with pytest.raises(InputError, match="defines none of the 3 words that are replaced"):
        replace_words(asked, set(), Place(tmp_path / "out"))
    assert not (tmp_path / "out").exists()


def test_queries_say_whether_they_carried_a_word(coined_cells):
    report = read_coined(coined_cells)
    kinds = {query.query_id: query.kind for query in read_queries(coined_cells)}
    carried = {name for name, kind in kinds.items() if kind == "carried"}
    assert len(carried) == report.carried == 3 and kinds["q-w"] == "other"
    typed = list(read_queries(coined_cells / "queries-coined.jsonl"))
    assert {query.query_id for query in typed} == carried
    coined = {each.coined for each in report.coined}
    for query in typed:
        assert any(word in query.text.lower() for word in coined)
        assert not any(each.word in query.text.lower() for each in report.coined)


def test_judgements_of_every_split_are_kept(cells, coined_cells):
    for name in ("test.tsv", "train.tsv"):
        assert (coined_cells / "qrels" / name).read_text() == (cells / "qrels" / name).read_text()


def test_the_same_seed_gives_the_same_bytes(cells, coined_cells, tmp_path):
    replace_words(CoinSettings(collection=str(cells), terms=3, seed=1), {"brovid"}, Place(tmp_path / "again"))
    for path in coined_cells.rglob("*"):
        if path.is_file():
            assert (tmp_path / "again" / path.relative_to(coined_cells)).read_bytes() == path.read_bytes()
    replace_words(CoinSettings(collection=str(cells), terms=3, seed=2), set(), Place(tmp_path / "other"))
    assert read_coined(tmp_path / "other").coined != read_coined(coined_cells).coined


def test_judgements_play_no_part_in_the_choice(cells, coined_cells, tmp_path):
    copy = tmp_path / "copy"
    write_documents(copy / "corpus.jsonl", read_documents(cells))
    write_queries(copy / "queries.jsonl", read_queries(cells))
    write_judgements(copy / "qrels" / "test.tsv", {"q-w": {"d3": 1}})
    report = replace_words(
        CoinSettings(collection=str(copy), terms=3, seed=1), {"brovid"}, Place(tmp_path / "out")
    )
    assert report.coined == read_coined(coined_cells).coined


def test_a_word_of_the_vocabulary_is_never_coined(cells, tmp_path):
    report = replace_words(CoinSettings(collection=str(cells), terms=3), set(), Place(tmp_path / "a"))
    first = report.coined[0].coined
    other = replace_words(CoinSettings(collection=str(cells), terms=3), {f"##{first}"}, Place(tmp_path / "b"))
    assert first not in {each.coined for each in other.coined}


# -- mistakes -----------------------------------------------------------------------------------------


def test_too_many_terms_says_how_many_there_are(cells, tmp_path):
    with pytest.raises(ConfigError, match=r"--terms 9: .* has 4 words to replace; ask for at most 4"):
        replace_words(CoinSettings(collection=str(cells), terms=9), set(), Place(tmp_path / "out"))
    assert list(tmp_path.iterdir()) == []


def test_words_that_never_occur_in_documents_are_no_candidates(cells, tmp_path):
    copy = tmp_path / "copy"
    write_documents(copy / "corpus.jsonl", read_documents(cells))
    write_queries(copy / "queries.jsonl", [Query("q", "bacteriophage lysis")])
    write_judgements(copy / "qrels" / "test.tsv", {"q": {"d1": 1}})
    with pytest.raises(ConfigError, match="no word of its domain is both in enough documents and in a query"):
        replace_words(CoinSettings(collection=str(copy), terms=1), set(), Place(tmp_path / "out"))
    assert not (tmp_path / "out").exists()


def test_a_place_that_is_taken_stays_as_it_is(cells, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine").write_text("mine")
    with pytest.raises(OutputError, match="already there; choose another -o or pass --overwrite"):
        replace_words(CoinSettings(collection=str(cells), terms=1), set(), Place(tmp_path / "out"))
    assert [path.name for path in tmp_path.rglob("*")] == ["out", "mine"]


def test_a_folder_without_judgements_is_refused(cells, tmp_path):
    copy = tmp_path / "copy"
    write_documents(copy / "corpus.jsonl", read_documents(cells))
    write_queries(copy / "queries.jsonl", read_queries(cells))
    with pytest.raises(InputError, match="holds no judgements"):
        replace_words(CoinSettings(collection=str(copy), terms=1), set(), Place(tmp_path / "out"))
    assert not (tmp_path / "out").exists()


def test_another_folder_is_not_a_coined_one(cells):
    with pytest.raises(InputError, match=r"holds no coined\.json; make one with: sparse-adapt coin"):
        read_coined(cells)


def test_a_damaged_report_names_the_field(coined_cells, tmp_path):
    content = json.loads((coined_cells / "coined.json").read_text())
    (tmp_path / "coined.json").write_text(json.dumps({**content, "seed": "one"}))
    with pytest.raises(InputError, match="seed"):
        read_coined(tmp_path)


@settings(max_examples=20)
@given(st.lists(st.sampled_from(["plasmid", "the", "plasmids", "water"]), max_size=8))
def test_counts_are_of_words_and_documents(words):
    counts = count_words([" ".join(words), "water"])
    assert counts.documents == 2
    assert counts.occurrences["plasmid"] == words.count("plasmid")
    assert counts.holding["water"] == 1 + ("water" in words)
