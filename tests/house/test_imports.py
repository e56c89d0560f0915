"""`import clearance` stays light: frameworks and drivers are loaded by what needs them."""

import json
import subprocess
import sys

# What `import clearance` may load beyond the standard library and itself. It is empty: LangGraph
# alone costs over a second, and a library that is loaded for every caller is paid by every caller.
ALLOWED: frozenset[str] = frozenset()

LONGEST_SECONDS = 0.3

# The fastest of a few fresh interpreters: the others show how busy the machine was.
TRIES = 5

_IMPORT = """
import json, sys, time
before = set(sys.modules)
start = time.perf_counter()
import clearance
seconds = time.perf_counter() - start
print(json.dumps([seconds, sorted(set(sys.modules) - before)]))
"""


def _import_clearance() -> tuple[float, set[str]]:
    done = subprocess.run([sys.executable, "-c", _IMPORT], check=True, capture_output=True, text=True)
    seconds, modules = json.loads(done.stdout)
    return seconds, {name.partition(".")[0] for name in modules}


def test_import_clearance_loads_nothing_but_itself_and_the_standard_library() -> None:
    _, loaded = _import_clearance()
    assert loaded - sys.stdlib_module_names - {"clearance"} <= ALLOWED


def test_import_clearance_takes_less_than_three_tenths_of_a_second() -> None:
    assert min(_import_clearance()[0] for _ in range(TRIES)) < LONGEST_SECONDS
