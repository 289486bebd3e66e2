"""Compiled loops where no folder can be written."""

import subprocess
import sys

SCRIPT = """
import numba.core.caching as caching
caching.FunctionCache._impl_class._locator_classes = []
from sparse_adapt.model.threads import compiled

@compiled
def total(count):
    result = 0
    for each in range(count):
        result += each
    return result

print(total(5))
"""


def test_a_loop_is_compiled_anew_where_nothing_can_be_kept(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.returncode) == ("10", 0), done.stderr
