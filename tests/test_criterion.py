"""How many terms pay for their token."""

import pytest

from sparse_adapt.terms.evidence import TermEvidence
from sparse_adapt.terms.mining import Term, paying


def terms(*gains: float) -> list[Term]:
    return [
        Term(f"t{n}", "jargon", TermEvidence(gain, ("a",), 1, 1, 0.0, 1.0)) for n, gain in enumerate(gains)
    ]


def test_it_stops_at_the_first_that_reaches_no_fair_share():
    # the mean of 100, 60 and 20 is 60, a quarter of it 15: 16 stays; then 49, and 12 is below 12.25
    chosen, said = paying(terms(100.0, 60.0, 20.0, 16.0, 12.0, 11.0), share=0.25, few=1)
    assert [term.text for term in chosen] == ["t0", "t1", "t2", "t3"]
    assert (
        said
        == "4 of 6 words that save anything; the next would save less than 25% of what each of these saves on average"
    )


def test_a_few_terms_stay_in_any_case():
    chosen, said = paying(terms(100.0, 1.0, 1.0), share=0.25, few=3)
    assert len(chosen) == 3 and said == "all 3 words that save anything"


def test_scale_means_nothing():
    gains = (100.0, 60.0, 20.0, 16.0, 12.0, 11.0)
    small, large = (len(paying(terms(*(factor * g for g in gains)), few=1)[0]) for factor in (1.0, 1000.0))
    assert small == large


@pytest.mark.parametrize("few", [0, 1, 100])
def test_no_terms_say_so(few):
    assert paying([], few=few) == ([], "no word that deserves a token; the vocabulary stays as it is")
