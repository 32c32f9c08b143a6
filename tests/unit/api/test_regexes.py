"""The expressions that are allowed for metrics."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muster.api.validation.rules.regexes import find_regex_problem
from support.searches import choose_example_count


@pytest.mark.parametrize(
    "pattern",
    [
        r"loss=([0-9.]+)",
        r"\s*loss\s*[:=]\s*([-+]?[0-9]*\.?[0-9]+(?:[eE][-+]?[0-9]+)?)",
        r"val\(?acc\)?: (?P<number>\d+\.\d+)%",
        r"[]+(|]*([^]|]+)\(.*",
        r"(\d{1,3}\.){3}\d",
        r"(?i)Loss (\S+)",
        r"x{a}(y)",
        r"(a{2})*",
    ],
)
def test_plain_ones_are_taken(pattern: str) -> None:
    assert find_regex_problem(pattern) is None


@pytest.mark.parametrize(
    "pattern", [r"([[a]+)", r"(a", r"a", r"(a+)+", r"((a|b)c)*", r"(\d{1,50}){2,30}", r"(a*?)*", r"(?x: ( ) )"]
)
def test_others_are_not(pattern: str) -> None:
    assert find_regex_problem(pattern) is not None


@settings(deadline=None, max_examples=choose_example_count(500))
@given(st.text(alphabet=r"ab()[]{}*+?|\^$.,12-:=P<>!#x", max_size=14))
def test_any_text_has_an_answer(pattern: str) -> None:
    answer = find_regex_problem(f"({pattern})")
    assert answer is None or answer
