"""What the documentation shows is run: files are written, commands are executed, resources are validated."""

import pathlib
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from muster.api.load import load
from muster.api.operator_config import read_config
from muster.api.validate import validate

ROOT = pathlib.Path(__file__).parents[3]
PAGES = sorted([ROOT / "README.md", *ROOT.glob("docs/**/*.md"), *ROOT.glob("training/**/*.md")])
BLOCK = re.compile(r"^```(?P<language>\w*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
BIN = pathlib.Path(sys.executable).parent
LANGUAGES = {"yaml", "python", "sh", ""}
"""A block of another language would be one that nothing here looks at; one without is a picture."""


@dataclass(frozen=True)
class Block:
    """A block of code on a page. `name` is the file that its first line names."""

    page: str
    language: str
    text: str

    @property
    def name(self) -> str | None:
        said = re.match(r"# (\S+\.\w+)\n", self.text)
        return said[1] if said else None


def blocks() -> Iterator[Block]:
    for page in PAGES:
        for found in BLOCK.finditer(page.read_text(encoding="utf-8")):
            yield Block(str(page.relative_to(ROOT)), found["language"], found["text"])


def test_every_block_is_of_a_kind_that_is_looked_at() -> None:
    assert {block.language for block in blocks()} <= LANGUAGES
    assert PAGES


@pytest.mark.parametrize(
    "block", [block for block in blocks() if block.language == "yaml"], ids=lambda block: block.page
)
def test_resources_and_configurations_are_valid(block: Block) -> None:
    if block.text.startswith("# status\n"):
        return
    (document,) = load(block.text, block.page)
    if block.text.startswith("# config.yaml\n"):
        assert read_config(document).node_pools
    else:
        validate(document)


def test_the_readmes_own_script_runs(tmp_path: pathlib.Path) -> None:
    page = [block for block in blocks() if block.page == "README.md"]
    for block in page:
        if block.name is not None:
            (tmp_path / block.name).write_text(block.text, encoding="utf-8")
    commands = [line for block in page if block.language == "sh" for line in block.text.splitlines()]
    assert commands[0] == ". .venv/bin/activate"

    for command in commands[1:]:
        program, *arguments = shlex.split(command)
        assert program == "muster"
        done = subprocess.run(
            [BIN / program, *arguments],
            cwd=tmp_path,
            env={"PATH": f"{BIN}:/usr/bin:/bin", "HOME": str(tmp_path)},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, f"{command}\n{done.stderr}"
    assert "All 4 ranks succeeded at step 50" in done.stderr
    assert "[rank 0] loss=" in done.stderr
    assert "[rank 1]" not in done.stderr


def test_targets_and_files_that_pages_name_are_there() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for target in re.findall(r"`make ([\w-]+)", text):
            assert re.search(rf"^{target}:", makefile, re.MULTILINE), f"{page}: make {target}"
        for link in re.findall(r"\]\(([^)#:]+)\)", text):
            assert (page.parent / link).exists(), f"{page}: {link}"
