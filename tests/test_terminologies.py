"""Glossaries of terminology tools and ontologies: terms, synonyms and definitions, in one language."""

import pytest

from sparse_adapt.collection.glossary import Definition, read_dictionary
from sparse_adapt.errors import InputError

OBO = """format-version: 1.2
ontology: x

[Term]
id: X:1
name: zorvex
def: "How a team \\"spends\\"." [X:ref]
synonym: "spend plan" EXACT []
is_a: X:0

[Term]
id: X:2
name: nothing said

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
SKOS = """<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"
 xmlns:skos="http://www.w3.org/2004/02/skos/core#">
<skos:Concept rdf:about="x#1">
  <skos:prefLabel xml:lang="en">zorvex</skos:prefLabel><skos:altLabel xml:lang="en">spend plan</skos:altLabel>
  <skos:prefLabel xml:lang="de">Zorvexe</skos:prefLabel>
  <skos:definition xml:lang="de">Wie.</skos:definition><skos:definition xml:lang="en">How.</skos:definition>
</skos:Concept>
<rdf:Description rdf:about="x#2"><skos:prefLabel>bare</skos:prefLabel></rdf:Description>
</rdf:RDF>
"""


@pytest.mark.parametrize(
    ("name", "content", "expected", "without"),
    [
        ("g.obo", OBO, {"zorvex": 'How a team "spends".', "spend plan": 'How a team "spends".'}, 1),
        (
            "g.tbx",
            TBX,
            {"zorvex": "How a team spends.", "spend plan": "How a team spends.", "glimfe": "Une chose."},
            0,
        ),
        ("g.rdf", SKOS, {"zorvex": "How.", "spend plan": "How."}, 1),
    ],
)
def test_terms_and_synonyms_have_the_definition(tmp_path, capfd, name, content, expected, without):
    path = tmp_path / name
    path.write_text(content)
    assert read_dictionary(path) == [Definition(term, said) for term, said in expected.items()]
    told = "1 entries have no term with a definition, and are left out (on line"
    assert (told in capfd.readouterr().err) == bool(without)


def test_a_broken_file_is_named_with_its_line_and_nothing_beside_it_is_read(tmp_path):
    path = tmp_path / "g.tbx"
    path.write_text(TBX.replace("</tbx>", ""))
    with pytest.raises(InputError, match=r"g\.tbx:\d+: broken XML"):
        read_dictionary(path)
    (tmp_path / "secret").write_text("secret")
    doctype = f'<!DOCTYPE x [<!ENTITY s SYSTEM "{tmp_path}/secret">]>'
    path.write_text(TBX.replace("<tbx", f"{doctype}<tbx").replace("How a team", "How &s; team"))
    assert "secret" not in str(read_dictionary(path))
