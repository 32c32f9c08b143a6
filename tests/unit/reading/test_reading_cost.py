"""Reading a resource takes a limited time for every resource within the size limits."""

import json
import os

import pytest
from hypothesis import HealthCheck, given, settings, target
from hypothesis import strategies as st

from muster.api.document import JSON
from muster.api.validation.validate import MAX_SPEC_BYTES
from support.rows import check_rows

from .any_specs import any_spec
from .reading_cost import BOUND_SECONDS, NOISE, resource_of, seconds_of_reading
from .slow_specs import SLOW_SPECS, SLOW_STATUSES, spec

LONG_EXAMPLES = int(os.environ.get("MUSTER_READING_EXAMPLES", "200"))
"""The examples of the long run, a minute or two; for more set MUSTER_READING_EXAMPLES=20000."""

_SEARCH = settings(
    deadline=None,
    max_examples=20,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
)


def _check(written: JSON) -> None:
    taken = seconds_of_reading(resource_of(written))
    target(taken)
    assert taken < NOISE * BOUND_SECONDS


def _fits(written: JSON) -> bool:
    # longer ones are refused for their length, and the search should not stop at that
    return len(json.dumps(written)) <= MAX_SPEC_BYTES


def test_a_spec_that_might_take_long_does_not() -> None:
    seconds_of_reading(resource_of(spec()))  # caches of all jobs are not a slow one's

    def check(name: str) -> None:
        assert seconds_of_reading(resource_of(SLOW_SPECS[name])) < NOISE * BOUND_SECONDS

    check_rows(SLOW_SPECS, check)


@pytest.mark.parametrize("name", SLOW_STATUSES)
def test_a_status_that_might_take_long_does_not(name: str) -> None:
    assert seconds_of_reading(resource_of(spec(), SLOW_STATUSES[name])) < NOISE * BOUND_SECONDS


@_SEARCH
@given(any_spec().filter(_fits))
def test_no_spec_takes_long(written: JSON) -> None:
    _check(written)


@pytest.mark.long
@pytest.mark.timeout(max(900, LONG_EXAMPLES))
@settings(_SEARCH, max_examples=LONG_EXAMPLES)
@given(st.data())
def test_a_long_search_finds_no_spec_that_takes_long(data: st.DataObject) -> None:
    _check(data.draw(any_spec().filter(_fits)))
