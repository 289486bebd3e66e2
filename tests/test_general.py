"""The general passages and questions that ship with the package."""

from sparse_adapt.synthetic.background import general_pairs


def test_each_half_holds_thousands_of_short_passages_and_as_many_questions():
    for half in ("teaches", "judges"):
        found = list(general_pairs(half))
        assert 2_000 < len(found) < 3_000
        assert len({query.text for _, query in found}) == len(found)
        assert all(passage.document_id == query.query_id for passage, query in found)
        lengths = [len(passage.text.split()) for passage, _ in found]
        assert min(lengths) >= 12 and max(lengths) <= 110


def test_the_halves_share_no_text():
    taught, judged = (
        {text for passage, question in general_pairs(half) for text in (passage.full_text, question.text)}
        for half in ("teaches", "judges")
    )
    assert not taught & judged


def test_the_halves_share_no_article():
    taught, judged = ({passage.title for passage, _ in general_pairs(half)} for half in ("teaches", "judges"))
    assert taught & judged == {""}  # only passages without a title
