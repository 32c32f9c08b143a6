"""The pages name existing modules, functions and constants, and where they are."""

import re
from collections.abc import Iterator
from pathlib import Path

from muster_dev.file_checks import list_files
from muster_dev.paths import ROOT
from support.rows import check_rows

FILES = tuple(list_files())
PATHS = tuple(f"/{file.relative_to(ROOT).as_posix()}" for file in FILES)
FOLDERS = frozenset(parent.as_posix() for path in PATHS for parent in Path(path).parents)
MODULES_PAGE = ROOT / "docs" / "operator-modules.md"
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
MODULE = re.compile(r"`([\w/]+\.py)`")
FOLDER = re.compile(r"`([\w.]+(?:/\w+)+)/?`|`(\w+)`:")
PAGE = re.compile(r"\bdocs/[\w/-]+\.md\b")
DEFINITION = re.compile(r"`(\w+)`\s+(?:in|of)\s+`([\w/]+\.py)`")
NOT_OF_THE_TREE = frozenset(("train.py", "__init__.py"))
"""Names of users' scripts, and of files that each package has."""


def list_parts(text: str) -> Iterator[str]:
    """Yield the parts of a page in which a short name means one file.

    These are its paragraphs, list items, and rows of tables together with the table's header.
    """
    for paragraph in re.split(r"\n\s*\n", text):
        if paragraph.startswith("|"):
            header, *rows = paragraph.splitlines()
            yield from (f"{header}\n{row}" for row in rows)
        else:
            yield from re.split(r"\n(?=\s*(?:-|\d+\.) )", paragraph)


def find_files(path: str, part: str) -> list[str]:
    """Return the files that a path means in this part of a page.

    The path is the end of one file's path only, or the path of a file in a folder that the part names, also by another
    file in it.
    """
    ends = [file for file in PATHS if file.endswith(f"/{path}")]
    if len(ends) <= 1:
        return ends
    names = {name for names in FOLDER.findall(part) for name in names if name}
    names |= {name.rpartition("/")[0] for name in MODULE.findall(part) if "/" in name}
    folders = {folder for name in names for folder in FOLDERS if folder.endswith(f"/{name}")}
    return [file for file in ends if file.removesuffix(f"/{path}") in folders] or [
        file for file in ends if file == f"/{path}"
    ]


def test_a_module_is_where_a_page_says() -> None:
    def check(page: Path) -> None:
        text = page.read_text(encoding="utf-8")
        found = [
            (path, find_files(path, part))
            for part in list_parts(text)
            for path in MODULE.findall(part)
            # A page may have the file's content for the reader.
            if path not in NOT_OF_THE_TREE and f"# {path}\n" not in text
        ]
        # With several files the page needs a longer path, or the folder in the same sentence.
        assert [(path, files) for path, files in found if len(files) != 1] == []

    check_rows(PAGES, check)


def test_a_page_that_a_file_names_is_there() -> None:
    sources = [file for file in FILES if file.suffix in {".md", ".py", ".toml", ".yaml", ""}]
    named_pages = {page for file in sources for page in PAGE.findall(file.read_text(encoding="utf-8"))}
    assert [page for page in sorted(named_pages) if not (ROOT / page).is_file()] == []


def test_a_function_class_or_constant_is_where_a_page_says() -> None:
    def check_row(page: Path) -> None:
        text = page.read_text(encoding="utf-8")
        named = [(name, find_files(path, part)) for part in list_parts(text) for name, path in DEFINITION.findall(part)]
        absent = [
            (name, files)
            for name, files in named
            if not re.search(
                rf"^(?:    )?(?:(?:async )?def|class) {name}\b|^{name}\b.* = ",
                "".join((ROOT / file[1:]).read_text(encoding="utf-8") for file in files),
                re.MULTILINE,
            )
        ]
        assert absent == []

    check_rows(PAGES, check_row)


def test_the_page_about_the_operators_modules_has_each_of_them_once() -> None:
    rows = re.findall(r"^\| (?:`(\w+)`: )?(`.*?) \|", MODULES_PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    listed = [
        f"{folder}/{module}" if folder else module
        for folder, modules in rows
        for module in re.findall(r"`(\w+)`", modules)
    ]
    controller = ROOT / "operator" / "muster" / "controller"
    modules = {file.relative_to(controller).with_suffix("").as_posix() for file in controller.glob("**/*.py")}
    assert sorted(listed) == sorted(name for name in modules if not name.endswith("__init__"))


def test_each_decision_has_a_number_of_its_own() -> None:
    """ "Decision 17" means one page, and the page has its own number. A branch that is not merged may have one, too."""
    decisions = sorted((ROOT / "docs" / "decisions").glob("*.md"))
    names = [int(page.name[:4]) for page in decisions]
    titles = re.findall(r"^# (\d+)\. ", "".join(page.read_text(encoding="utf-8") for page in decisions), re.MULTILINE)
    assert names == [int(number) for number in titles] == sorted(set(names))
