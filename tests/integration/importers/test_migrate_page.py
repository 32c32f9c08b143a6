"""docs/migrate.md shows for each original the job that `muster import` prints, and fields of the status that exist."""

import re
import shlex
from itertools import pairwise
from pathlib import Path

import pytest
import yaml

from integration.docs.pages import Block, blocks
from muster_dev.paths import ROOT
from support.example_runs import BIN, finish, start

PAGE = ROOT / "docs" / "migrate.md"
TEXT = PAGE.read_text(encoding="utf-8")
BLOCKS = [block for block in blocks(PAGE) if block.language in {"yaml", "python"}]
ORIGINALS = {str(block.name): block for block in BLOCKS if block.name is not None}
PAIRS = [(first, second) for first, second in pairwise(BLOCKS) if first.name is not None and second.name is None]
COMMANDS = {
    words[2]: words for words in map(shlex.split, re.findall(r"^`(muster import .*?)` prints$", TEXT, re.MULTILINE))
}


def test_every_original_has_its_job_and_its_command() -> None:
    assert {first.name for first, _ in PAIRS} == COMMANDS.keys() == ORIGINALS.keys() - {"runtime.yaml"}
    assert len(PAIRS) == 5


@pytest.mark.parametrize(("original", "job"), PAIRS, ids=lambda block: str(block.name))
def test_an_original_becomes_the_job_beside_it(original: Block, job: Block, tmp_path: Path) -> None:
    for name, block in ORIGINALS.items():
        (tmp_path / name).write_text(block.text, encoding="utf-8")
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "train.py").write_text("print('trained')\n", encoding="utf-8")
    done = finish(start([str(BIN / "muster"), *COMMANDS[str(original.name)][1:]], {}, tmp_path))
    assert done.exit_code == 0, done.messages
    assert done.output == job.text


def test_the_fields_of_the_status_exist() -> None:
    crd = yaml.safe_load((ROOT / "crds" / "muster.dev_distributedtrainingjobs.yaml").read_text(encoding="utf-8"))
    status = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"]
    named = set(re.findall(r"`status\.([\w.]+)`", TEXT))
    assert len(named) > 10
    for name in named:
        schema = status
        for part in name.split("."):
            schema = schema.get("items", schema)
            assert part in schema.get("properties", {}), name
            schema = schema["properties"][part]
