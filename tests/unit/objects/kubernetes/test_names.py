"""The names of a job's child objects."""

import pytest

from muster.objects.kubernetes.names import build_source_name, is_source_name

SHA256 = "0123456789abcdef" * 4


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (build_source_name("digits", SHA256), True),
        (build_source_name("other", SHA256), False),
        (SHA256[:16], False),
        ("digits-source-", False),
        ("digits-source-0123456789abcdeg", False),
    ],
)
def test_only_names_of_the_jobs_own_edited_code_are_accepted(name: str, expected: bool) -> None:  # noqa: FBT001 - a row
    assert is_source_name("digits", name) is expected
