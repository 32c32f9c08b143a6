"""Each job belongs to one shard, before and after its first status, and when the number of shards changes."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.api.document import JSON
from muster.api.status.status import DEFAULT_STATUS
from muster.cli.errors import BadInput
from muster.cli.operator.operator import read_shard
from muster.core.shard import MAX_SHARDS, Shard


@given(uid=st.text(), count=st.integers(1, MAX_SHARDS), recorded=st.none() | st.integers(1, MAX_SHARDS - 1))
def test_one_shard_has_the_job(uid: str, count: int, recorded: int | None) -> None:
    stored: list[dict[str, JSON]] = [{}, {"phase": "Running"} if recorded is None else {"shard": recorded}]
    for status in stored:
        owners = [index for index in range(count) if Shard(index, count).has_job(uid, status)]
        assert len(owners) == (1 if recorded is None or not status or recorded < count else 0)


def test_new_jobs_are_spread_over_the_shards() -> None:
    counts = Counter(next(index for index in range(4) if Shard(index, 4).has_job(f"uid-{n}", {})) for n in range(1000))
    assert all(200 < counts[index] < 300 for index in range(4))


@pytest.mark.parametrize("count", [1, 2, 5])
def test_a_started_job_stays_in_its_shard(count: int) -> None:
    assert Shard(0, count).has_job("any", {"phase": "Running"})
    assert not Shard(0, count).has_job("any", {"phase": "Running", "shard": 1})
    assert Shard(0, count).find_missing_shard({"shard": 1}) == (1 if count == 1 else None)


def test_the_first_shard_uses_the_names_of_an_operator_without_shards() -> None:
    assert (Shard().suffix, Shard(0, 3).suffix, Shard(2, 3).suffix) == ("", "", "-2")
    assert (Shard(0, 3).recorded_index, Shard(2, 3).recorded_index) == (None, 2)


def test_the_option_names_index_and_count() -> None:
    assert read_shard("1/2") == Shard(1, 2)
    for text in ("", "1", "2/2", "-1/2", "1/65", "a/b", "1/2/3"):
        with pytest.raises(BadInput, match=f"--shard {text}: expected INDEX/COUNT"):
            read_shard(text)


@given(uid=st.text(), count=st.integers(1, 8))
def test_the_default_that_the_api_server_adds_is_no_status(uid: str, count: int) -> None:
    for index in range(count):
        shard = Shard(index, count)
        assert shard.has_job(uid, DEFAULT_STATUS) == shard.has_job(uid, {})
