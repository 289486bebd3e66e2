"""Names of tokens: escaped ones go back, and no two meet."""

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sparse_adapt.engines.names import escape_token, unescape_token


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.text(st.sampled_from('\\u0123c \t"#.é𝄞'), max_size=12), unique=True))
def test_escaped_names_go_back_and_never_meet(tokens):
    names = [escape_token(token, lambda character: character in ". ") for token in tokens]
    assert [unescape_token(name) for name in names] == tokens
    assert len(set(names)) == len(tokens)
    assert not any("." in name or " " in name for name in names)
