"""Glossaries of terminology tools and ontologies: terms, synonyms and definitions, in one language."""

import json
import sys
import time

import pytest
from rdflib import Graph

from sparse_adapt.collection.glossary import Definition, read_dictionary
from sparse_adapt.errors import InputError, MissingExtraError

OBO = """format-version: 1.2
ontology: x

[Term]
id: X:1
name: zor\\:vex ! what a comment says
def: "How a team \\"spends\\"\\, all of it." [X:ref] {source="x"}
synonym: "spend plan" EXACT []
synonym: "small plan" NARROW []
synonym: "plan" BROAD []
is_a: X:0 ! zero

[Term]
id: X:2
name: nothing said

[Term]
id: X:3
name: once said
def: "Gone." []
is_obsolete: true

[Typedef]
id: part_of
name: part of
def: "no term" []
"""
TBX = """<?xml version="1.0"?>
<!-- a glossary -->
<tbx xmlns="urn:iso:std:iso:30042:ed-2"><text><body>
<conceptEntry id="1">
  <descrip type="definition">How a team <hi>spends</hi>.</descrip>
  <langSec xml:lang="de"><termSec><term>Zorvexe</term></termSec></langSec>
  <langSec xml:lang="en-GB"><termSec><term>zorvex</term></termSec><termSec><term>spend plan</term></termSec></langSec>
</conceptEntry>
<termEntry><langSet xml:lang="fr"><descripGrp><descrip type="definition">Une chose.</descrip></descripGrp>
  <tig><term>glimfe</term></tig></langSet></termEntry>
</body></text></tbx>
"""
NEWER = """<tbx style="dct" xml:lang="de" xmlns="urn:iso:std:iso:30042:ed-2" xmlns:basic="http://www.tbxinfo.net/ns/basic">
<text><body><conceptEntry id="1">
  <descripGrp><basic:definition>Wie ein Team zahlt.</basic:definition></descripGrp>
  <langSec xml:lang="EN"><termSec><term>zorvex</term><basic:partOfSpeech>noun</basic:partOfSpeech></termSec></langSec>
</conceptEntry>
<conceptEntry id="1"><langSec xml:lang="en_US">
  <descripGrp><basic:definition xml:lang="en-US">How a team pays.</basic:definition></descripGrp>
</langSec></conceptEntry>
<conceptEntry id="2"><descripGrp><basic:definition>Nur deutsch.</basic:definition></descripGrp>
  <langSec xml:lang="en"><termSec><term>bare</term></termSec></langSec></conceptEntry>
</body></text></tbx>
"""
HEAD = """<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:xl="http://www.w3.org/2008/05/skos-xl#"
 xmlns:skos="http://www.w3.org/2004/02/skos/core#" xmlns:owl="http://www.w3.org/2002/07/owl#">"""
SKOS = f"""{HEAD}
<skos:Concept rdf:about="x#1">
  <skos:prefLabel xml:lang="en">zorvex</skos:prefLabel><skos:altLabel xml:lang="en">spend plan</skos:altLabel>
  <skos:prefLabel xml:lang="de">Zorvexe</skos:prefLabel>
  <skos:definition xml:lang="de">Wie.</skos:definition>
</skos:Concept>
<rdf:Description rdf:about="x#1"><skos:definition xml:lang="en">How.</skos:definition></rdf:Description>
<rdf:Description rdf:about="x#2" skos:prefLabel="glimfe" skos:definition="A boat."/>
<rdf:Description rdf:about="x#3"><skos:prefLabel>bare</skos:prefLabel></rdf:Description>
<rdf:Description rdf:about="x#4"><xl:prefLabel><rdf:Description xl:literalForm="quomp"/></xl:prefLabel>
  <skos:definition><rdf:Description rdf:value="A sound."/></skos:definition></rdf:Description>
<rdf:Description rdf:about="x#5" skos:prefLabel="once" skos:definition="Gone.">
  <owl:deprecated rdf:datatype="http://www.w3.org/2001/XMLSchema#boolean">true</owl:deprecated></rdf:Description>
</rdf:RDF>
"""
OF_SKOS = {"zorvex": "How.", "spend plan": "How.", "glimfe": "A boat.", "quomp": "A sound."}
SPENDS = 'How a team "spends", all of it.'


@pytest.mark.parametrize(
    ("name", "content", "expected", "said"),
    [
        (
            "g.obo",
            OBO,
            {"zor:vex": SPENDS, "spend plan": SPENDS},
            [
                "2 synonyms that mean more, less or something related are left out",
                "1 obsolete entries are left out",
                "1 entries have no term with a definition, and are left out (nothing said)",
            ],
        ),
        (
            "g.tbx",
            TBX,
            {"zorvex": "How a team spends.", "spend plan": "How a team spends.", "glimfe": "Une chose."},
            [],
        ),
        (
            "g.tbx",
            NEWER,
            {"zorvex": "How a team pays."},
            ["1 entries have no term with a definition, and are left out (bare)"],
        ),
        (
            "g.rdf",
            SKOS,
            OF_SKOS,
            [
                "1 obsolete entries are left out",
                "1 entries have no term with a definition, and are left out (bare)",
            ],
        ),
    ],
)
def test_terms_and_synonyms_have_the_definition(tmp_path, capfd, name, content, expected, said):
    path = tmp_path / name
    path.write_text(content)
    found = read_dictionary(path)
    assert found == [Definition(each.term, expected[each.term]) for each in found] and len(found) == len(
        expected
    )
    assert capfd.readouterr().err.splitlines() == [f"{path}: {line}" for line in said]


@pytest.mark.parametrize(
    ("ending", "syntax"),
    [("skos", "xml"), ("ttl", "turtle"), ("nt", "nt"), ("n3", "n3"), ("jsonld", "json-ld")],
)
def test_skos_is_read_in_all_its_syntaxes(tmp_path, ending, syntax):
    path = tmp_path / f"g.{ending}"
    Graph().parse(data=SKOS, format="xml", publicID="http://host/").serialize(path, format=syntax)
    assert {each.term: each.definition for each in read_dictionary(path)} == OF_SKOS


MANY, ESCAPE = range(8_000), "\\U00000079"
NAMED = '@prefix s: <http://www.w3.org/2004/02/skos/core#> .\n<a> s:prefLabel "x" ; s:definition '


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("g.ttl", "".join(f"@prefix p{n}: <http://p/{n}#> .\n" for n in MANY) + f'{NAMED}"y" .'),
        ("g.n3", "".join(f"@prefix p{n}: <http://p/{n}#> .\n" for n in MANY) + f'{NAMED}"y" .'),
        ("g.nt", f'<a:b> <http://www.w3.org/2004/02/skos/core#prefLabel> "{"x" * 3_000_000}" .\n'
                 '<a:b> <http://www.w3.org/2004/02/skos/core#definition> "y" .\n'),
        ("g.ttl", NAMED + f'"{ESCAPE * 100_000}" .'),
    ],
)  # fmt: skip
def test_time_grows_no_faster_than_a_file(tmp_path, name, content):
    path = tmp_path / name
    path.write_text(content)
    started = time.process_time()
    assert read_dictionary(path)
    assert time.process_time() - started < 2.0


def test_a_number_too_long_for_python_is_no_traceback(tmp_path, caplog):
    path = tmp_path / "g.ttl"
    path.write_text(f'{NAMED}"y" ; s:notation "{"9" * 5_000}"^^<http://www.w3.org/2001/XMLSchema#integer> .')
    assert read_dictionary(path) and not caplog.records


@pytest.mark.parametrize(
    ("terms", "definitions", "expected"),
    [
        ("'colour'@en-GB, 'color'@en-US", "'British'@en_GB, 'plain'@EN", "colour British; color plain"),
        ("'color'@en-US", "'Deutsch'@de, 'Canadian'@en-CA, 'none'", "color Canadian"),
        ("'color'@en-US", "'Deutsch'@de, 'none'", "color none"),
        ("'Farbe'@de, 'couleur'@fr", "'rouge'@fr, 'rot'@de-AT", "Farbe rot"),
        ("'color'", "'Deutsch'@de, 'English'@en", "color English"),
        ("'color'@en", "'red'@en, 'blue'@en", "color blue; color red"),
    ],
)
def test_a_definition_is_in_the_language_of_its_term(tmp_path, terms, definitions, expected):
    path = tmp_path / "g.ttl"
    path.write_text(
        "@prefix s: <http://www.w3.org/2004/02/skos/core#> .\n"
        f"<a> s:prefLabel {terms} ; s:definition {definitions.replace('en_GB', 'en-gb')} ."
    )
    found = "; ".join(f"{each.term} {each.definition}" for each in read_dictionary(path))
    assert sorted(found.split("; ")) == sorted(expected.split("; "))


def test_terms_without_a_definition_in_their_language_are_counted(tmp_path):
    path = tmp_path / "g.ttl"
    path.write_text(
        "@prefix s: <http://www.w3.org/2004/02/skos/core#> .\n<a> s:prefLabel 'x'@en ; s:definition 'y'@de ."
    )
    with pytest.raises(InputError, match=r'needs a string "definition"'):
        read_dictionary(path)


LAUGHS = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 10))


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("g.tbx", TBX.replace("</tbx>", ""), r":\d+: broken XML"),
        ("g.xml", SKOS, r": is no TBX \(it begins with <RDF>\); SKOS needs the ending \.rdf"),
        ("g.tbx", TBX.replace("<tbx", '<!DOCTYPE tbx [<!ENTITY e "D">]><tbx').replace("How", "D &e;"),
         r":5: uses the entity &e;; write the text out"),
        ("g.rdf", SKOS.replace("</rdf:RDF>", ""), ": broken RDF"),
        ("g.rdf", f'<!DOCTYPE x [<!ENTITY s SYSTEM "secret">]>{SKOS.replace("How.", "&s;")}',
         ": the entity s stands for others or for another file"),
        ("g.rdf", f'<!DOCTYPE x [<!ENTITY e0 "ha">{LAUGHS}]>{SKOS.replace("How.", "&e9;")}',
         ": the entity e1 stands for others"),
        ("g.jsonld", '{"@context": "http://host/skos.json", "prefLabel": "x"}', ": takes its @context from"),
        ("g.jsonld", '{"@graph": [{"@context": [{"@import": "file:///x"}]}]}', ": takes its @context from"),
        ("g.jsonld", "{", ":1: broken JSON"),
        ("g.ttl", "<a> <b> ", ": broken RDF"),
        ("g.rdf", SKOS.replace("RDF", "RDF " + " ".join(f'xmlns:p{n}="http://p/{n}#"' for n in MANY), 1),
         r": declares 8,\d+ prefixes, where 1,000 are read"),
        ("g.rdf", SKOS.replace("</rdf:RDF>", f'<rdf:Alt><rdf:_1 rdf:parseType="Literal">{"<i>a</i>" * 8_000}</rdf:_1>'
                               '</rdf:Alt></rdf:RDF>'), ": has a value of 8,000 tags, where 200 are read"),
        ("g.jsonld", json.dumps({"@context": {f"p{n}": f"http://p/{n}#" for n in MANY}, "p1:a": "x"}),
         ": declares 8,000 prefixes"),
        ("g.obo", OBO.replace('"spend plan"', "spend plan"), ":8: broken OBO"),
    ],
)  # fmt: skip
def test_what_is_broken_or_reaches_out_is_one_line(tmp_path, name, content, said):
    path = tmp_path / name
    path.write_text(content)
    (tmp_path / "secret").write_text("secret")
    with pytest.raises(InputError, match=rf"{name}{said}") as caught:
        read_dictionary(path)
    assert "\n" not in str(caught.value)


def test_entities_may_shorten_the_names_of_an_rdf_file(tmp_path):
    path = tmp_path / "g.rdf"
    path.write_text(f'<!DOCTYPE r [<!ENTITY x "http://x#">]>{SKOS.replace("x#", "&x;")}')
    assert {each.term: each.definition for each in read_dictionary(path)} == OF_SKOS


@pytest.mark.parametrize(("package", "name"), [("fastobo", "g.obo"), ("rdflib", "g.ttl"), ("lxml", "g.tbx")])
def test_a_missing_package_says_what_to_install(tmp_path, monkeypatch, package, name):
    monkeypatch.setitem(sys.modules, package, None)
    (tmp_path / name).write_bytes(b"any")
    with pytest.raises(MissingExtraError, match=r"is not installed: pip install 'sparse-adapt\[files\]'"):
        read_dictionary(tmp_path / name)
