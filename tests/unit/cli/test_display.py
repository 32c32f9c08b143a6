import io

import pytest
from rich.console import Console

from muster.cli.display import BoardDisplay, LineDisplay, open_display


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("file", "environment", "expected"),
    [
        (Terminal(), {"TERM": "xterm-256color"}, BoardDisplay),
        (Terminal(), {"TERM": "xterm", "NO_COLOR": "1"}, BoardDisplay),
        (Terminal(), {"TERM": "dumb"}, LineDisplay),
        (io.StringIO(), {"TERM": "xterm"}, LineDisplay),
        (io.StringIO(), {"TERM": "xterm", "FORCE_COLOR": "1"}, LineDisplay),
    ],
)
def test_a_board_is_for_terminals_that_can_show_one(
    file: io.StringIO, environment: dict[str, str], expected: type
) -> None:
    assert isinstance(open_display(Console(file=file, _environ=environment)), expected)
