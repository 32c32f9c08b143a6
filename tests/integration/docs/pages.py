"""The documentation's pages, split into blocks of code and commands."""

import pathlib
import re
from collections.abc import Iterator
from dataclasses import dataclass

from muster_dev.paths import ROOT

PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("training/**/*.md")])
_BLOCK = re.compile(r"^(?P<indent> *)```(?P<language>\w*)\n(?P<text>.*?)^(?P=indent)```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A block of code on a page. `name` is the file in its first line."""

    page: str
    language: str
    text: str

    @property
    def name(self) -> str | None:
        said = re.match(r"# (\S+\.\w+)\n", self.text)
        return said[1] if said else None

    @property
    def commands(self) -> list[str]:
        """Its lines as a shell reads them: a line with a backslash at its end continues."""
        return [line for line in re.sub(r"\\\n\s*", "", self.text).splitlines() if line.strip()]


def blocks(page: pathlib.Path | None = None) -> Iterator[Block]:
    """Yield the blocks of one page, or of all pages."""
    for each in PAGES if page is None else [page]:
        for found in _BLOCK.finditer(each.read_text(encoding="utf-8")):
            # In a list, a block is indented as the text of its item.
            text = re.sub(f"^{found['indent']}", "", found["text"], flags=re.MULTILINE)
            yield Block(str(each.relative_to(ROOT)), found["language"], text)


def headings(page: pathlib.Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub generates them."""
    text = _BLOCK.sub("", page.read_text(encoding="utf-8"))
    titles = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}
