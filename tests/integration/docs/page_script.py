"""`python -m integration.docs.page_script PAGE`: prints a page's commands, and writes its files into this folder.

The workflow of kind runs the quick starts with it (.github/workflows/kind.yml).
"""

import sys
from pathlib import Path

from integration.docs.pages import blocks


def main(page: Path) -> None:
    """Write the files that the page shows, and print its commands in their order."""
    for block in blocks(page.resolve()):
        if block.language == "sh":
            sys.stdout.write("".join(f"{command}\n" for command in block.commands))
        elif block.name is not None:
            Path(block.name).write_text(block.text, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
