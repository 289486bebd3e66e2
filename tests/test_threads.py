"""Compiled loops where no folder can be written."""

from forking import forked
from numba.core import caching

from sparse_adapt.model.head.threads import compiled


def total(count):
    result = 0
    for each in range(count):
        result += each
    return result


def test_a_loop_is_compiled_anew_where_nothing_can_be_kept():
    def work():
        caching.FunctionCache._impl_class._locator_classes = []
        assert compiled(total)(5) == 10

    ended = forked(work)
    assert ended.status == 0, ended.messages
