"""The pages name existing modules and constants."""

import re
from pathlib import Path

import pytest

from muster_dev.file_checks import list_files
from muster_dev.paths import ROOT

FILES = tuple(list_files())
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
MODULE = re.compile(r"`([\w/]+\.py)`")
PAGE = re.compile(r"\bdocs/[\w/-]+\.md\b")
CONSTANT = re.compile(r"`([A-Z][A-Z_]+)` in `([\w/]+\.py)`")


def named(path: str) -> list[Path]:
    """Return the tree's files with this name, or with this end of their path."""
    return [file for file in FILES if f"/{file.relative_to(ROOT)}".endswith(f"/{path}")]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_module_that_a_page_names_is_there(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    # A page may have the file's content for the reader.
    absent = [path for path in MODULE.findall(text) if not named(path) and f"# {path}\n" not in text]
    assert absent == []


def test_a_page_that_a_file_names_is_there() -> None:
    sources = [file for file in FILES if file.suffix in {".md", ".py", ".toml", ".yaml", ""}]
    named_pages = {page for file in sources for page in PAGE.findall(file.read_text(encoding="utf-8"))}
    assert [page for page in sorted(named_pages) if not (ROOT / page).is_file()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_constant_stands_where_a_page_says(page: Path) -> None:
    for name, path in CONSTANT.findall(page.read_text(encoding="utf-8")):
        (file,) = named(path)
        assert re.search(rf"^{name}\b.* = ", file.read_text(encoding="utf-8"), re.MULTILINE), (name, path)


def test_decisions_are_counted_without_gaps() -> None:
    """ "Decision 17" means one page, and the page has its own number."""
    decisions = sorted((ROOT / "docs" / "decisions").glob("*.md"))
    names = [int(page.name[:4]) for page in decisions]
    titles = re.findall(r"^# (\d+)\. ", "".join(page.read_text(encoding="utf-8") for page in decisions), re.MULTILINE)
    assert names == [int(number) for number in titles] == list(range(1, len(decisions) + 1))
