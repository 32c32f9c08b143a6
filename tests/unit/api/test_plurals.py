import pytest

from muster.api.plurals import capitalize, describe_share, pluralize


@pytest.mark.parametrize(("count", "text"), [(0, "0 ranks"), (1, "1 rank"), (2, "2 ranks")])
def test_one_has_no_plural(count: int, text: str) -> None:
    assert pluralize(count, "rank") == text


@pytest.mark.parametrize(
    ("count", "of", "text"),
    [
        (0, 4, "0 of 4 ranks run"),
        (1, 4, "1 of 4 ranks runs"),
        (4, 4, "4 of 4 ranks run"),
        (1, 1, "The rank runs"),
        (0, 1, "No rank runs"),
    ],
)
def test_the_verb_goes_with_the_number(count: int, of: int, text: str) -> None:
    assert capitalize(describe_share(count, of, "rank", "runs", "run")) == text
