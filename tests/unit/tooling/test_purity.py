import pytest

from muster_dev import purity


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("from datetime import UTC, datetime\nat = datetime.now(UTC)", [(2, "datetime.datetime.now")]),
        ("import datetime as d\nat = d.date.today()", [(2, "datetime.date.today")]),
        ("from time import monotonic as clock", [(1, "time")]),
        ("import os.path", [(1, "os")]),
        ("def f():\n    import random", [(2, "random")]),
        ("import urllib.parse, urllib.request", [(1, "urllib.request")]),
        ("text = open('a').read()", [(1, "open")]),
        ("read = map(open, names)", [(1, "open")]),
        ("import sys\nprint(1, file=sys.stderr)", [(2, "print"), (2, "sys.stderr")]),
        ("from signal import signal", [(1, "signal.signal")]),
    ],
)
def test_what_is_impure_is_found(text: str, expected: list[tuple[int, str]]) -> None:
    assert purity.find_impure_names(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "from datetime import datetime\nat = datetime.fromisoformat(text)",
        "from urllib.parse import quote",
        "from importlib.resources import files\nfiles('a').joinpath('b.json').read_text()",
        "from signal import Signals\nname = Signals(9).name",
        "import sys\nsize = sys.getsizeof(text)",
        "now = facts.now\ntime = now.time.open",
    ],
)
def test_what_is_pure_is_left_alone(text: str) -> None:
    assert purity.find_impure_names(text) == []


def test_the_pure_folders_are_those_of_the_import_contract() -> None:
    assert {"muster.api", "muster.core", "muster.render"} <= set(purity.list_pure_folders())
