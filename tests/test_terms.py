"""A term list is read whole or named with its place; mining finds what a domain says and the model can't."""

import math
import random
import tracemalloc
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from transformers import AutoTokenizer, PreTrainedTokenizerFast

from sparse_adapt.collection.readers import Document, read_documents
from sparse_adapt.errors import InputError
from sparse_adapt.model.folder import resolve
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.model.vocabulary import extend
from sparse_adapt.terms.evidence import TermEvidence
from sparse_adapt.terms.mining import Term, category_of, mine_terms, read_terms, write_terms
from sparse_adapt.terms.words import Words, find_words

SYLLABLES = (
    "ba",
    "dre",
    "fim",
    "gol",
    "kul",
    "mor",
    "nax",
    "pli",
    "quo",
    "rith",
    "sev",
    "tor",
    "vash",
    "zel",
)
EVIDENCE = TermEvidence(10.5, ("o", "##au", "##th", "##2"), 3, 2, 1.04, 11.81, ("oauth2",))


def put(folder: Path, content: str) -> Path:
    path = folder / "terms.json"
    path.write_text(content)
    return path


class TestFile:
    def test_categories_in_their_order(self, tmp_path):
        path = put(tmp_path, '{"acronyms": ["OAuth2"], "jargon": ["gatrocraptic", "max_connections"]}')
        expected = [
            Term("OAuth2", "acronyms"),
            Term("gatrocraptic", "jargon"),
            Term("max_connections", "jargon"),
        ]
        assert read_terms(path) == read_terms(tmp_path) == expected

    def test_bundled(self):
        assert read_terms("gatrocraptic") == [Term("Gatrocraptic", "coined")]

    def test_a_person_can_read_and_edit_what_is_written(self, tmp_path):
        write_terms(tmp_path / "terms.json", [Term("OAuth2", "acronyms", EVIDENCE), Term("naïve", "jargon")])
        assert (tmp_path / "terms.json").read_text() == (
            '{\n  "acronyms": [\n    "OAuth2"\n  ],\n  "jargon": [\n    "naïve"\n  ],\n  "evidence": {\n'
            '    "OAuth2": {"gain": 10.5, "pieces": ["o", "##au", "##th", "##2"], "occurrences": 3, '
            '"documents": 2, "zipf": 1.04, "log_odds": 11.81, "variants": ["oauth2"]}\n  }\n}\n'
        )
        edited = (tmp_path / "terms.json").read_text().replace('"OAuth2"\n', '"OAuth 2"\n')
        assert read_terms(put(tmp_path, edited)) == [Term("OAuth 2", "acronyms"), Term("naïve", "jargon")]

    @pytest.mark.parametrize(
        ("content", "problem"),
        [
            ("", ': is empty; it maps categories to lists, such as {"jargon": ["kubectl"]}'),
            ("{}", ': holds no terms; it maps categories to lists, such as {"jargon": ["kubectl"]}'),
            ('{"a": []}', ': holds no terms; it maps categories to lists, such as {"jargon": ["kubectl"]}'),
            (
                '{\n  "a": ["x",]\n}',
                ":2: broken JSON (",
            ),
            ('"x"', ':1: not an object; it maps categories to lists, such as {"jargon": ["kubectl"]}'),
            ('{\n"a": "x"}', ':2: needs a list of terms under "a" (found: string)'),
            ('{"a": {"x": 1}}', ':1: needs a list of terms under "a" (found: object)'),
            ('{"a": [\n"x",\n5]}', ':3: needs strings under "a" (found: 5)'),
            ('{"a": [\n"x",\n" "]}', ':3: holds an empty term under "a"; remove it'),
            (
                '{"a": [\n"x",\n"y",\n"x"]}',
                ':4: duplicate term "x" (first on line 2); remove one of them',
            ),
            (
                '{"a": ["x"],\n"b": ["x"],\n"evidence": {"x": null}}',
                ':2: duplicate term "x" (first on line 1); remove one of them',
            ),
            ('{"a": ["x"], "a": ["y"]}', ': holds the key "a" twice; join the two'),
            (
                '{"a": ["x"], "evidence":\n{"x": {"gain": "much"}}}',
                ':2: the evidence of "x" is not as `terms` writes it; mend or delete it',
            ),
            ('{"a": ["x"], "evidence": {"x": {"gain": NaN}}}', ": broken JSON (NaN is not a number)"),
        ],
    )
    def test_bad_files(self, tmp_path, content, problem):
        path = put(tmp_path, content)
        with pytest.raises(InputError) as caught:
            read_terms(path)
        assert str(caught.value).startswith(f"{path}{problem}")
        assert "\n" not in str(caught.value)

    def test_missing(self, tmp_path):
        with pytest.raises(InputError, match=r"terms.json: no such file; check the path"):
            read_terms(tmp_path / "terms.json")


printable = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12).filter(str.strip)
numbers = st.floats(-1e9, 1e9)
counts = st.integers(0, 10**9)
texts = st.lists(printable, max_size=3).map(tuple)
evidence = st.builds(TermEvidence, numbers, texts, counts, counts, numbers, numbers, texts)
terms = st.builds(Term, printable, st.sampled_from(["acronyms", "jargon", "µ"]), st.none() | evidence)


@given(st.lists(terms, min_size=1, unique_by=lambda term: term.text))
def test_round_trip(tmp_path_factory, entries):
    path = tmp_path_factory.getbasetemp() / "round" / "terms.json"
    write_terms(path, entries)
    categories = list(dict.fromkeys(entry.category for entry in entries))
    assert read_terms(path) == sorted(entries, key=lambda entry: categories.index(entry.category))


# -- words ---------------------------------------------------------------------------------------


class TestWords:
    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("Set max_connections, not IL-6 or OAuth2.", "Set max_connections not IL-6 or OAuth2"),
            ("C++ and C#; node.js (v8).", "C++ and C# node.js v8"),
            ("Crohn's agent\u2019s don't", "Crohn s agent s don t"),
            ("See https://a.example/max_x or mail me@b.example now", "See or mail now"),
            ("pre- and post-war -- a__b _c_", "pre and post-war a__b c"),
            ("nai\u0308ve na\u00efve", "na\u00efve na\u00efve"),
            ("x" * 41 + " short", "short"),
            ("\u5fc3\u7b4b\u75c7 heart", "heart"),
        ],
    )
    def test_what_a_word_is(self, text, words):
        assert list(find_words(text)) == words.split()

    def count(self, *texts: str, tokens: Iterable[str] = ()) -> dict[str, tuple[int, int]]:
        words = Words(str.lower)
        for text in texts:
            words.add(text)
        folded = words.folded(set(tokens).__contains__)
        return {word.surfaces[0]: (word.count.occurrences, word.count.documents) for word in folded}

    def test_case_variants_are_one_word_under_the_most_frequent_surface(self):
        assert self.count("K8s k8s K8s", "K8S") == {"K8s": (4, 2)}
        assert self.count("Pod pod") == {"pod": (2, 1)}

    def test_plurals_join_the_singular_where_both_occur(self):
        assert self.count("receptor receptors", "Receptors") == {"receptor": (3, 2)}
        assert self.count("receptors") == {"receptors": (1, 1)}
        assert self.count("policy policies", "proxies proxy proxy") == {"policy": (2, 1), "proxy": (3, 1)}
        assert self.count("suffix suffixes virus analysis class") == {
            "suffix": (2, 1),
            "virus": (1, 1),
            "analysis": (1, 1),
            "class": (1, 1),
        }

    def test_what_only_looks_like_a_plural_stays(self):
        assert self.count("HTTP HTTPS HTTPS") == {"HTTP": (1, 1), "HTTPS": (2, 1)}
        assert self.count("symptom symptoms", tokens=["symptoms"]) == {"symptom": (1, 1), "symptoms": (1, 1)}

    def test_parts_of_compounds_count_too(self):
        assert self.count("beta-catenin", "catenin max_pool") == {
            "beta-catenin": (1, 1),
            "beta": (1, 1),
            "catenin": (2, 2),
            "max_pool": (1, 1),
        }


SCRIPTS = {  # letters, and the marks that stand behind them
    "Latin": ("bdfgklmnrtvxzäöñ", "\u0301\u0308"),
    "Greek": ("αβγδεζηθκλμνξπρτφχψω", "\u0301"),
    "Cyrillic": ("бвгджзклмнпртфхцчшй", ""),
    "Hebrew": ("בגדזחטיכלמנסעפצקרש", "\u05b8\u05bc"),
    "Arabic": ("بتجحخدذرزسشصضطظعغفقكل", "\u064e\u0652"),
    "Persian": ("پچژگبتخدرزسشفقکل", ""),
    "Devanagari": ("कखगघचछजझटठडढतथदधनपफबभमयर", "\u093f\u094d\u0940"),
    "Tamil": ("கஙசஞடணதநபமயரலவழளறன", "\u0bcd\u0bbf"),
    "Korean": ("가나다라마바사아자차카타파하", ""),
    "Georgian": ("აბგდევზთიკლმნოპჟრსტ", ""),
}
UNSEEN = "\u00ad\u200b\u200c\u200d\u2060\ufeff\u200e\u202e\u180e\x00\x07"


@pytest.mark.parametrize("seed", range(3))
def test_every_mined_term_occurs_as_its_token_in_the_corpus_it_came_from(tiny_model, seed):
    chance = random.Random(seed)
    documents = [
        Document(f"{script}-{number}", " ".join(_strange_word(chance, *SCRIPTS[script]) for _ in range(6)))
        for script in SCRIPTS
        for number in range(4)
    ] * 2
    encoder = SparseEncoder.load(tiny_model)
    terms = mine_terms(documents, encoder.tokenizer, top=10_000)
    assert len(terms) > 150
    tokens = {new.term: new.token_id for new in extend(encoder, terms).new_tokens}
    assert tokens.keys() == {term.text for term in terms}
    ids = encoder.tokenizer([document.full_text for document in documents])["input_ids"]
    said = Counter(token_id for each in ids for token_id in each)
    assert {term.text: said[tokens[term.text]] for term in terms} == {
        term.text: term.evidence.occurrences for term in terms
    }


def _strange_word(chance: random.Random, letters: str, marks: str) -> str:
    """A word with signs in it that nobody sees."""
    signs = []
    for _ in range(chance.randint(4, 9)):
        signs.append(chance.choice(letters))
        signs += [chance.choice(marks)] if marks and chance.random() < 0.3 else []
        signs += [chance.choice(UNSEEN)] if chance.random() < 0.4 else []
    return "".join(signs) + chance.choice(letters)


@pytest.mark.parametrize("text", ["zorvex", "zor-vex", "C++", "zor_vex zor_vex", "Zorvex zorvex zorvexes"])
def test_one_document_of_one_word_is_enough(tiny_model, tmp_path, text):
    tokenizer = SparseEncoder.load(tiny_model).tokenizer
    terms = mine_terms([Document("1", text)], tokenizer, top=5)
    if terms:
        write_terms(tmp_path / "terms.json", terms)
        assert read_terms(tmp_path / "terms.json") == terms


def test_memory_grows_with_distinct_words_only(ordinary):
    words = Words(str.lower)
    tracemalloc.start()
    try:
        for document in ordinary * 5:
            words.add(document.text)
        before, _ = tracemalloc.get_traced_memory()
        for document in ordinary * 50:
            words.add(document.text)
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert after < 1.3 * before  # ten times the documents


@pytest.mark.parametrize(
    ("surface", "category"),
    [
        ("OAuth2", "acronyms"),
        ("TLS", "acronyms"),
        ("mRNA", "acronyms"),
        ("K8s", "identifiers"),
        ("max_connections", "identifiers"),
        ("node.js", "identifiers"),
        ("HostDown", "identifiers"),
        ("c++", "identifiers"),
        ("IL-6", "hyphenated"),
        ("Gatrocraptic", "jargon"),
    ],
)
def test_categories(surface, category):
    assert category_of(surface) == category


# -- mining --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tokenizer() -> PreTrainedTokenizerFast:
    """The lower-case WordPiece tokenizer of BERT."""
    return AutoTokenizer.from_pretrained(resolve("splade-tiny"))


@pytest.fixture(scope="module")
def ordinary() -> list[Document]:
    """The 26 documents without the word that was invented for five of them."""
    documents = []
    for document in read_documents("gatrocraptic"):
        text = document.full_text.replace("Gatrocraptic", "WORD").replace("gatrocraptic", "WORD")
        documents.append(Document(document.document_id, text))
    return documents


def with_word(documents: list[Document], word: str) -> list[Document]:
    return [Document(each.document_id, each.text.replace("WORD", word)) for each in documents]


def found(
    documents: Iterable[Document], tokenizer: PreTrainedTokenizerFast, top: int | None = None
) -> list[str]:
    return [term.text for term in mine_terms(documents, tokenizer, top)]


def texts_of(*lines: str) -> list[Document]:
    return [Document(str(number), line) for number, line in enumerate(lines)]


class TestMining:
    def test_the_invented_word_comes_first(self, tokenizer):
        first, *others = mine_terms(read_documents("gatrocraptic"), tokenizer)
        assert (first.text, first.category) == ("Gatrocraptic", "jargon")
        assert first.evidence is not None
        assert first.evidence.pieces == ("ga", "##tro", "##cr", "##ap", "##tic")
        assert (first.evidence.occurrences, first.evidence.documents) == (13, 5)
        assert first.evidence.zipf == 0
        assert first.evidence.log_odds > 15
        assert first.evidence.variants == ("gatrocraptic",)
        assert len(others) < 10
        assert all(other.evidence.gain < first.evidence.gain / 5 for other in others)

    @given(
        st.lists(
            st.sampled_from(SYLLABLES),
            min_size=3,
            max_size=4,
        )
    )
    @settings(max_examples=30, deadline=None)
    def test_whatever_it_is(self, tokenizer, ordinary, syllables):
        word = "".join(syllables)
        if len(tokenizer.tokenize(word)) > 2:
            assert found(with_word(ordinary, word), tokenizer)[0] == word

    @pytest.mark.parametrize("word", ["max_spend", "ZelPlan", "KX7", "zel-quorp", "spend.plan", "zorb++"])
    def test_however_it_is_written(self, tokenizer, ordinary, word):
        assert found(with_word(ordinary, word), tokenizer)[0] == word

    def test_every_invented_term_of_the_larger_corpus(self, tokenizer):
        mined = {term.text.lower() for term in mine_terms(read_documents("coined"), tokenizer)}
        invented = {term.text.lower() for term in read_terms("coined")}
        assert len(invented) >= 24
        assert invented <= mined
        assert len(mined - invented) <= 5

    def test_words_side_by_side_are_no_terms(self, tokenizer, ordinary):
        compounds = [
            "long-term",
            "follow-up",
            "wild-type",
            "type-2",
            "e.g",
            "HIV-positive",
            "5-year",
            "10mg",
            "1980s",
        ]
        documents = [
            *ordinary,
            *texts_of(*[f"A {compound} plan." for compound in compounds for _ in range(30)]),
        ]
        mined = found(documents, tokenizer, top=10_000)
        assert not set(compounds) & set(mined)

    def test_compounds_with_a_name_in_them_are_terms(self, tokenizer, ordinary):
        compounds = ["IL-6", "caspase-3", "beta-catenin", "max_connections"]
        documents = [
            *ordinary,
            *texts_of(*[f"The {compound} level." for compound in compounds for _ in range(6)]),
        ]
        mined = found(documents, tokenizer)
        assert set(compounds) <= set(mined)
        assert not {"catenin", "caspase"} & set(mined)  # they never stand alone

    def test_a_name_in_many_compounds_is_a_term_itself(self, tokenizer, ordinary):
        documents = [
            *ordinary,
            *texts_of(*[f"A kubectl-{word} and kubectl." for word in ("based", "driven", "only")]),
        ]
        mined = found(documents, tokenizer)
        assert "kubectl" in mined
        assert not [text for text in mined if text.startswith("kubectl-")]

    def test_a_word_in_one_document_once_is_left_out_unless_asked_for(self, tokenizer, ordinary):
        documents = [*ordinary, Document("x", "A lone xylotremp.")]
        assert "xylotremp" not in found(documents, tokenizer)
        assert "xylotremp" in found(documents, tokenizer, top=10_000)

    def test_tokens_and_their_inflections_are_no_terms(self, tokenizer, ordinary):
        mined = found(ordinary, tokenizer, top=10_000)
        assert mined
        assert all(len(tokenizer.tokenize(text)) > 1 for text in mined)
        extra = texts_of("clustering overlapped symptom " * 20) + texts_of("kubectls kubectl " * 20)
        mined = found([*ordinary, *extra], tokenizer, top=10_000)
        assert "kubectl" in mined
        assert not {"clustering", "overlapped", "symptom", "kubectls"} & set(mined)

    def test_general_words_gain_less_than_strange_ones(self, tokenizer, ordinary):
        """Both break into three pieces and occur as often; one of them is in every dictionary."""
        documents = [*ordinary, *texts_of(*["A tumour and a plumgar."] * 8)]
        terms = {term.text: term.evidence for term in mine_terms(documents, tokenizer, top=10_000)}
        assert terms["plumgar"].gain > 1.2 * terms["tumour"].gain
        assert terms["tumour"].zipf > 3 > terms["plumgar"].zipf == 0

    def test_words_that_the_model_cannot_spell_come_first(self, tokenizer):
        """Twenty documents of Telugu, each word in all of them: 9 nats more general language than in pieces."""
        texts = ["తెలుగు భాష చాలా అందమైనది", "మరియు మనకు ఇష్టం"]
        documents = [Document(str(number), texts[number % 2]) for number in range(20)]
        spelt = [word for text in texts for word in text.split() if "[UNK]" not in tokenizer.tokenize(word)]
        mined = mine_terms(documents, tokenizer)
        unspelt = [term for term in mined if "[UNK]" in term.evidence.pieces]
        assert len(unspelt) == 7 - len(spelt) > 0 and mined[: len(unspelt)] == unspelt
        total = 10 * 4 + 10 * 3
        saved = 10 * (math.log(1e9) + math.log(10 / total))  # once in each of ten documents
        assert unspelt[0].evidence.gain == pytest.approx(
            saved - math.log(1e9) - math.log(total) / 2, abs=0.01
        )
        assert {term.category for term in unspelt} == {"jargon"}

    def test_top_says_how_many(self, tokenizer, ordinary):
        everything = found(ordinary, tokenizer, top=10_000)
        assert found(ordinary, tokenizer, top=5) == everything[:5]
        assert found(ordinary, tokenizer, top=0) == []
        assert found([], tokenizer) == found(texts_of(""), tokenizer) == []

    def test_the_same_list_whatever_the_order_of_documents(self, tokenizer):
        documents = list(read_documents("gatrocraptic"))
        expected = mine_terms(iter(documents), tokenizer, top=200)
        random.Random(3).shuffle(documents)
        assert mine_terms(iter(documents), tokenizer, top=200) == expected

    def test_what_the_tokenizer_cannot_spell_is_a_term(self, ordinary):
        raw = Tokenizer(models.WordPiece({"[UNK]": 0, "the": 1, "plan": 2}, unk_token="[UNK]"))
        raw.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        only_unknown = PreTrainedTokenizerFast(tokenizer_object=raw, unk_token="[UNK]")
        mined = found(texts_of(*["the Zorvex plan"] * 5, *["the plan"] * 50), only_unknown)
        assert mined == ["Zorvex"]

    def test_a_word_that_normalises_to_nothing_is_dropped(self):
        raw = Tokenizer(models.WordPiece({"[UNK]": 0, "a": 1, "##b": 2}, unk_token="[UNK]"))
        raw.normalizer = normalizers.Replace(Regex("z"), "")
        raw.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        dropping = PreTrainedTokenizerFast(tokenizer_object=raw, unk_token="[UNK]")
        assert found(texts_of("zzz ab zab"), dropping, top=10) == ["ab"]

    def test_other_tokenizers(self, ordinary):
        """Byte-level BPE and SentencePiece, which mark the space before a word, learnt from the texts."""
        documents = with_word(ordinary, "gatrocraptic")
        learn = [document.text.replace("gatrocraptic", "") for document in documents] * 3
        byte_level = Tokenizer(models.BPE())
        byte_level.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        byte_level.decoder = decoders.ByteLevel()
        alphabet = pre_tokenizers.ByteLevel.alphabet()
        byte_level.train_from_iterator(learn, trainers.BpeTrainer(vocab_size=2000, initial_alphabet=alphabet))
        pieces = Tokenizer(models.Unigram())
        pieces.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Replace(" ", "\u2581")])
        pieces.pre_tokenizer = pre_tokenizers.Metaspace()
        pieces.train_from_iterator(
            learn,
            trainers.UnigramTrainer(
                vocab_size=900, special_tokens=["<unk>"], unk_token="<unk>", initial_alphabet=list("gatrocpi")
            ),
        )
        for raw, unknown in ((byte_level, None), (pieces, "<unk>")):
            learnt = PreTrainedTokenizerFast(tokenizer_object=raw, unk_token=unknown)
            first = mine_terms(documents, learnt)[0]
            assert first.text == "gatrocraptic"
            assert len(first.evidence.pieces) > 1
            assert all(len(learnt(f" {text}").input_ids) > 1 for text in found(documents, learnt, top=300))

    def test_tiny_model(self, tiny_model, twelve_documents):
        terms = mine_terms(twelve_documents, AutoTokenizer.from_pretrained(tiny_model))
        assert terms[0].text.lower() == "zorvex"
        assert "long-term" not in [term.text for term in terms]

    def test_what_is_mined_is_written_and_read_back(self, tokenizer, tmp_path):
        terms = mine_terms(read_documents("gatrocraptic"), tokenizer, top=50)
        write_terms(tmp_path / "terms.json", terms)
        read = read_terms(tmp_path / "terms.json")
        assert len(read) == 50
        assert set(read) == set(terms)
