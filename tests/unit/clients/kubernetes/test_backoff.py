from hypothesis import given
from hypothesis import strategies as st

from muster.clients.kubernetes.backoff import FIRST_SECONDS, MAX_SECONDS, compute_backoff_seconds
from muster.objects.kubernetes.errors import ApiError

DRAWS = st.floats(min_value=0, max_value=1, exclude_max=True)


@given(failures=st.integers(min_value=0, max_value=10**6), draw=DRAWS)
def test_it_grows_to_a_limit(failures: int, draw: float) -> None:
    now, later = compute_backoff_seconds(failures, None, draw), compute_backoff_seconds(failures + 1, None, draw)
    assert FIRST_SECONDS / 2 <= now <= later <= MAX_SECONDS


@given(failures=st.integers(min_value=0, max_value=20), draw=DRAWS, asked=st.floats(min_value=0.1, max_value=600))
def test_never_sooner_than_asked(failures: int, draw: float, asked: float) -> None:
    error = ApiError(429, "TooManyRequests", "later", retry_after=asked)
    assert compute_backoff_seconds(failures, error, draw) >= max(asked, compute_backoff_seconds(failures, None, draw))


def test_those_who_failed_together_come_back_apart() -> None:
    assert (
        compute_backoff_seconds(3, None, 0.0)
        < compute_backoff_seconds(3, None, 0.5)
        < compute_backoff_seconds(3, None, 0.9)
    )
