"""docs/security.md names for each mechanism a test that exists."""

import re

from muster_dev.paths import ROOT

PAGE = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
TABLE = re.compile(r"^\| [^|]+ \| mechanism \| test \|\n\|[-|]+\|\n((?:\|.*\n)+)", re.MULTILINE)
TEST = re.compile(r"tests/[\w/]+\.py")


def rows() -> list[list[str]]:
    """Return the cells of all tables of mechanisms."""
    lines = [line for table in TABLE.findall(PAGE) for line in table.splitlines()]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


def test_each_mechanism_has_a_test() -> None:
    boundaries = PAGE.partition("\n## Trust boundaries\n")[2].partition("\n## ")[0]
    assert len(TABLE.findall(PAGE)) == len(re.findall(r"^### ", boundaries, re.MULTILINE)) == 5
    assert [cells for cells in rows() if len(cells) != 3 or not TEST.search(cells[2])] == []


def test_each_test_that_the_page_names_exists_and_has_tests() -> None:
    named = set(TEST.findall(PAGE))
    assert len(named) > 20
    missing = {name for name in named if not (ROOT / name).exists() or "def test_" not in (ROOT / name).read_text()}
    assert missing == set()
