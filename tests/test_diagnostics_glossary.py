"""What a run's glossary says of a term, beside what the term activates before and after."""

import copy

import pytest
import torch

import sparse_adapt as sa
from diagnostics.glossary import in_glossary
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.retrieve.encode import encode
from sparse_adapt.stages.record import new_record, write_record
from sparse_adapt.terms.entries import Entry
from sparse_adapt.terms.uses import Use, write_uses

SERVER = Entry("server", ("server", "host"), "", ("A machine that answers.",), written="Server")
USE = Use(SERVER, "word with a token", 4)


@pytest.fixture
def both(tiny_model):
    """A model, and the same with more of the token `log` wherever it looks."""
    base = SparseEncoder.load(tiny_model)
    model = copy.deepcopy(base)
    with torch.no_grad():
        model.output_bias[model.tokenizer.get_vocab()["log"]] += 9.0
    return base, model


def test_an_old_word_shows_its_sense_and_its_expansions_before_and_after(both):
    base, model = both
    found = in_glossary("Servers", [USE], base, model)
    assert (found.term, found.senses, found.not_used) == ("Server", SERVER.senses, "")
    log = base.tokenizer.get_vocab()["log"]
    [expansion] = [each for each in found.expansions if each.token == "log"]
    expected = [encode(each, ["Servers"], "query")[0, log] for each in both]
    assert [expansion.before, expansion.after] == pytest.approx(expected) and expected[1] > expected[0]
    weights = [each.after for each in found.expansions]
    assert weights == sorted(weights, reverse=True)


def test_a_word_that_the_glossary_lacks_has_no_section(both):
    assert in_glossary("client", [USE], *both) is None


def test_diagnose_reads_the_glossary_of_the_run(tiny_model, both, twelve_documents, tmp_path):
    folder = tmp_path / "run" / "model"
    both[1].save(folder)
    write_record(folder, new_record("adapt", str(tiny_model), {}, {}, 0.0))
    write_uses(tmp_path / "run" / "entries.jsonl", [USE])
    report = sa.diagnose(str(folder), "server", twelve_documents, device="cpu")
    assert report.glossary.kind == "word with a token"
    [section] = [each for each in report.sections() if each.title == "In the glossary"]
    assert len(section.parts) == 2
    without = sa.diagnose(str(tiny_model), "server", twelve_documents, device="cpu")
    assert without.glossary is None and len(without.sections()) == len(report.sections()) - 1
