"""The rules of set-up and checks, as tables."""

import pytest

from muster_dev.file_checks import FORBIDDEN_PATTERNS
from muster_dev.installed_torch import parse_version
from muster_dev.lock import split_entries


@pytest.mark.parametrize(
    ("version", "expected"),
    [("2.5", (2, 5)), ("2.15.0+cu132", (2, 15)), ("2.9.0a0+git1234", (2, 9)), ("1.13.1", (1, 13))],
)
def test_a_torch_is_compared_by_major_and_minor(version: str, expected: tuple[int, int]) -> None:
    assert parse_version(version) == expected


def test_a_lock_is_read_by_package_and_markers_stay_together() -> None:
    first = "a-b==1 \\\n    --hash=sha256:00\n"
    second = "c==1 ; python_full_version < '3.12' \\\n    --hash=sha256:01\n"
    third = "c==2 ; python_full_version >= '3.12' \\\n    --hash=sha256:02\n"
    assert split_entries(first + second + third) == {"a-b": first, "c": second + third}


# In pieces, so that the rule doesn't match its own test.
@pytest.mark.parametrize("pieces", [("see /", "work/main"), ("cd /", "root/x"), ("https://pypi", ".org/simple")])
def test_a_text_that_ties_the_tree_to_a_machine_is_found(pieces: tuple[str, str]) -> None:
    assert any(pattern.search("".join(pieces)) for pattern in FORBIDDEN_PATTERNS.values())


@pytest.mark.parametrize(
    "text", ["/workspace/train.py", "docs/work/x", "nodes/0/root/etc", "${HOME}/.cache", "/opt/ml/model"]
)
def test_a_text_that_only_looks_like_it_is_left_alone(text: str) -> None:
    assert not any(pattern.search(text) for pattern in FORBIDDEN_PATTERNS.values())
