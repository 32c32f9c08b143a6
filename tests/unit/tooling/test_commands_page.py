"""docs/commands.md lists every command."""

import re

from typer.core import TyperGroup
from typer.main import get_command

from muster.cli.commands import app
from muster_dev.paths import ROOT


def test_the_page_has_every_command() -> None:
    group = get_command(app)
    assert isinstance(group, TyperGroup)
    rows = [line for line in (ROOT / "docs" / "commands.md").read_text("utf-8").splitlines() if line.startswith("|")]
    listed = {name for row in rows for name in re.findall(r"`muster ([\w-]+)", row.split("|")[1])}
    assert listed == {name for name, command in group.commands.items() if not command.hidden}
