"""The size limits of an expression, checked before Python compiles it."""

import pytest

from muster.api.validation.rules.regex_size import MAX_DEPTH, MAX_RANGES, MAX_WIDE_CLASSES, find_size_problem
from muster.api.validation.rules.regexes import find_regex_problem


@pytest.mark.parametrize(
    "pattern",
    [
        "(" * MAX_DEPTH + "a" + ")" * MAX_DEPTH,
        "[0-9a-z]" * (MAX_RANGES // 2) + "(a)",
        "[é]" * MAX_WIDE_CLASSES + "(a)",
        r"[\x00-\x7f](a)",
        r"\[" * 200 + "(a)",
        r"[]-a](a)",
        r"[a-](a)[-a]",
        "perte élevée: ([0-9.]+) €",
    ],
)
def test_what_people_write_is_small_enough(pattern: str) -> None:
    assert find_regex_problem(pattern) is None


@pytest.mark.parametrize(
    ("pattern", "says"),
    [
        ("(" * (MAX_DEPTH + 1) + "a" + ")" * (MAX_DEPTH + 1), "nested more than"),
        ("(" * 5000, "nested more than"),
        ("[0-9]" * (MAX_RANGES + 1), "ranges"),
        ("[0-90-9" * MAX_RANGES, "ranges"),
        ("[é]" * (MAX_WIDE_CLASSES + 1), "non-ASCII"),
        ("(?i)[\x01-\uffff](a)", "a class with a range"),
        (r"(?i)[\x01-\uffff](a)", "a class with a range"),
        (r"[\U00000001-\U0010ffff](a)", "a class with a range"),
        (r"[\N{SPACE}-z](a)", "a class with a range"),
        (r"[\1-\377](a)", "a class with a range"),
        ("[^]-\uffff](a)", "a class with a range"),
        ("(?x)(a) # [", "comments and verbose mode"),
        ("(?-x:a)(b)", "comments and verbose mode"),
        ("(?#[)(a)", "comments and verbose mode"),
    ],
)
def test_what_takes_long_to_compile_is_not_compiled(pattern: str, says: str) -> None:
    value = find_size_problem(pattern)
    assert value is not None
    assert says in value


@pytest.mark.parametrize("pattern", [r"(?:(?:){100}){100}(a)", r"(a{1001})", r"((a{1,9}){2}){6}"])
def test_repetitions_within_repetitions_are_counted_together(pattern: str) -> None:
    assert "repe" in (find_regex_problem(pattern) or "")
