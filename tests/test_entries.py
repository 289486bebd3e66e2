"""What rows of a glossary mean: phrases, acronyms, references, senses; definitions without what stood around them."""

import pytest

from sparse_adapt.collection.glossary import Definition
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.terms.cleaning import cleaned, common_beginning
from sparse_adapt.terms.entries import EntryKeys, read_entries


@pytest.fixture(scope="module")
def keys(tiny_model):
    return EntryKeys(SparseEncoder.load(tiny_model).tokenizer)


def read(keys, *rows):
    return read_entries([Definition(*row) for row in rows], keys)


@pytest.mark.parametrize(
    ("term", "definition", "expected"),
    [
        ("access control list (ACL)", "Who may what.", ("access control list", "ACL", ())),
        ("ACL (access control list)", "Who may what.", ("access control list", "ACL", ())),
        ("ACL - access control list", "Who may what.", ("access control list", "ACL", ())),
        ("ACL: access control list", "Who may what.", ("access control list", "ACL", ())),
        ("identity provider (IdP)", "It vouches.", ("identity provider", "IdP", ())),
        (
            "Acme Simple Storage Service (Acme S3)",
            "It stores.",
            ("Acme Simple Storage Service", "S3", ("Acme S3",)),
        ),
        ("VPN", "Virtual private network. A tunnel.", ("Virtual private network", "VPN", ())),
        ("private gateway", "PG) The near side.", ("private gateway", "PG", ())),
        (
            "Acme Cloud Directory (Cloud Directory)",
            "A store.",
            ("Acme Cloud Directory", "", ("Cloud Directory",)),
        ),
        ("GovCloud (US)", "A region.", ("GovCloud", "", ())),  # which stands for nothing
        ("action", "An API function. It acts.", ("action", "", ())),  # its letters stand there by chance
        ("tagging", "A label. Also called labeling.", ("tagging", "", ("labeling",))),
        ("action", "A call. Also called operation or function.", ("action", "", ())),  # two at once
        ("ACL-free", "Without one.", ("ACL-free", "", ())),
    ],
)
def test_what_a_row_names(keys, term, definition, expected):
    [entry] = read(keys, (term, definition)).entries
    long, acronym, others = expected
    assert (entry.term, entry.acronym, entry.written) == (long, acronym, term)
    assert set(entry.forms) == {each for each in (long, acronym, *others) if each}


def test_a_fragment_of_the_term_is_no_part_of_the_definition(keys):
    [entry] = read(keys, ("private gateway", "PG) The near side.")).entries
    assert entry.senses == ("The near side.",)


def test_what_refers_to_another_is_a_form_of_it(keys):
    rows = [("AAD", "See additional data"), ("AD", "see AAD."), ("additional data", "What is checked.")]
    first, second, target = read(keys, *rows).entries
    assert set(target.forms) == {"additional data", "AAD", "AD"}
    assert (first.see, second.see, first.senses) == ("additional data", "additional data", ())


@pytest.mark.parametrize(
    ("rows", "remark"),
    [
        ([("a b", "see b a"), ("b a", "see a b")], "2 entries refer to each other in a circle: a b, b a"),
        ([("a b", "see a b")], "1 entries refer to each other in a circle: a b"),
        ([("a b", "See nothing here")], "1 entries refer to what the glossary doesn't hold: a b"),
        (
            [("access list (AL)", "One."), ("AL", "Audit log. Two.")],
            "1 with an acronym of several entries, each of which is taught: AL",
        ),
    ],
)
def test_what_is_odd_is_counted_and_nothing_is_lost(keys, rows, remark):
    found = read(keys, *rows)
    assert found.remarks == (remark,) and len(found.entries) == len(rows)


@pytest.mark.parametrize(
    ("rows", "senses"),
    [
        ([("reputation", "1. A metric. 2. A measure.")], ("A metric.", "A measure.")),
        ([("version", "Since 2. It grew by 3. Then no more.")], ("Since 2. It grew by 3. Then no more.",)),
        ([("station", "A step."), ("Stations", "A place.")], ("A step.", "A place.")),
        (
            [
                ("stack", "Formation: A set. Works: A group."),
                ("Formation", "It forms."),
                ("works", "It works."),
            ],
            ("Formation: A set.", "Works: A group."),
        ),
        ([("note", "Warning: A set. Works: A group.")], ("Warning: A set. Works: A group.",)),
    ],
)
def test_senses(keys, rows, senses):
    assert read(keys, *rows).entries[0].senses == senses


@pytest.mark.parametrize("order", [1, -1])
def test_a_row_that_spells_an_acronym_out_and_one_that_explains_it_are_one_entry(keys, order):
    rows = [("VPN", "Virtual private network"), ("VPN", "A tunnel between offices.")][::order]
    [entry] = read(keys, *rows).entries
    assert (entry.term, entry.acronym) == ("Virtual private network", "VPN")
    assert set(entry.senses) == {"Virtual private network", "A tunnel between offices."}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("access keys", "Access key"),
        ("e mail", "e-mail"),
        ("policies", "Policy"),
        ("load-balancer", "load balancer"),
        *[("flux gate", f"flux{sign}gate") for sign in "\u200b\u2010\u2011\u2013\uff0d"],
        ("long-term debt", "long-\u200bterm \u200bdebt"),
        ("flux gate", "flux\u00a0gate"),
    ],
)
def test_what_is_written_in_two_ways_is_one_thing(keys, one, other):
    assert keys.of(one) == keys.of(other) != ()


def test_a_word_that_a_hyphen_joins_is_one_word_too(keys):
    assert keys.parts("e-mail") == (("e", "mail"), "email")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A <b>method</b>, see [here](https://a.b/c). A B C D E F G H, Z", "A method, see here."),
        ("Definition: a **thing** &amp; more (1998-09-17)", "a thing & more"),
        ("The page is at https://a.b/c.", "The page is at"),
        ("Vitamin A B", "Vitamin A B"),
        ("<language> An old one.", "An old one."),
        ("n. a thing", "a thing"),
    ],
)
def test_cleaned(text, expected):
    assert cleaned(text) == expected


def test_what_most_definitions_begin_with_is_left_out(keys):
    texts = [f"In this manual, w{number} does that." for number in range(12)]
    assert common_beginning(texts) == "In this manual, "
    assert common_beginning([*texts, *(f"x{number} is not in it" for number in range(12))]) == ""
    assert read(keys, *((f"w{n}", text) for n, text in enumerate(texts))).entries[3].senses == (
        "w3 does that.",
    )
