"""The steps of a release that the workflow .github/workflows/release.yml runs (docs/release.md).

It runs without a virtual environment, so this module uses the standard library only.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator, Sequence

from muster_dev.paths import PYPROJECT, ROOT

CHART = ROOT / "charts" / "muster"
CHANGELOG = ROOT / "CHANGELOG.md"

_TAG = re.compile(r"v(\d+\.\d+\.\d+)")
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_IMAGE_LINES = ('  repository: ""\n', '  digest: ""\n')


def check_release(arguments: Sequence[str]) -> int:
    """`check-release TAG`: compare the tag with the versions of the package, the chart and the changelog."""
    tag = arguments[0] if arguments else ""
    problems = list(find_problems(tag))
    for problem in problems:
        print(f"check-release: {problem}", file=sys.stderr)
    return 1 if problems else 0


def find_problems(tag: str) -> Iterator[str]:
    """Yield a message for each version that is not the tag's."""
    match = _TAG.fullmatch(tag)
    if match is None:
        yield f"the tag: found {tag!r}; expected v and three numbers, such as v1.2.3"
        return
    expected = match[1]
    for place, found in read_versions().items():
        if found != expected:
            yield f"{place}: found {found or 'none'}; expected {expected}, as in the tag"
    if f"## [{expected}]" not in CHANGELOG.read_text(encoding="utf-8"):
        yield f"CHANGELOG.md: found no section ## [{expected}]; rename the section Unreleased"


def read_versions() -> dict[str, str]:
    """Return the version of each part by the place where it is."""
    project: dict[str, str] = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["project"]
    chart = (CHART / "Chart.yaml").read_text(encoding="utf-8")
    fields = {field: re.search(rf"^{field}: (\S+)$", chart, re.MULTILINE) for field in ("version", "appVersion")}
    return {
        "version in pyproject.toml": project["version"],
        **{f"{field} in Chart.yaml": match[1] if match else "" for field, match in fields.items()},
    }


def set_chart_image(arguments: Sequence[str]) -> int:
    """`set-chart-image REPOSITORY DIGEST`: let the chart's values name the published image."""
    values = CHART / "values.yaml"
    try:
        text = name_image(values.read_text(encoding="utf-8"), *arguments)
    except (TypeError, ValueError) as error:
        print(f"set-chart-image: {error}", file=sys.stderr)
        return 1
    values.write_text(text, encoding="utf-8")
    return 0


def name_image(values: str, repository: str, digest: str) -> str:
    """Return the text of the chart's values with an image. Raises `ValueError` for a bad digest or other values."""
    if not _DIGEST.fullmatch(digest):
        raise ValueError(f"the digest: found {digest!r}; expected sha256: and 64 hexadecimal digits")
    for line, value in zip(_IMAGE_LINES, (repository, digest), strict=True):
        if values.count(line) != 1:
            raise ValueError(f"values.yaml: found {values.count(line)} times {line.strip()!r}; expected it once")
        values = values.replace(line, line.replace('""', f'"{value}"'))
    return values
