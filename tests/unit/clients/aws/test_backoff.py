import pytest

from muster.clients.aws.backoff import MAX_SECONDS, compute_backoff
from muster.objects.aws.errors import AccessDenied, AwsError, Throttled, Unavailable

NO_RESPONSE = Unavailable("no answer")
DENIED = AccessDenied("no", "sagemaker:ListTrainingJobs", "*")


@pytest.mark.parametrize(
    ("failures", "error", "seconds"),
    [
        # one lost answer of many
        (1, NO_RESPONSE, 0.0),
        (2, NO_RESPONSE, 1.0),
        (3, NO_RESPONSE, 2.0),
        (7, NO_RESPONSE, 32.0),
        (8, NO_RESPONSE, MAX_SECONDS),
        (10_000, NO_RESPONSE, MAX_SECONDS),
        (5, DENIED, 8.0),
        # its gate delays it
        (5, Throttled("slowly"), 0.0),
    ],
)
def test_pauses_double_up_to_a_minute(failures: int, error: AwsError, seconds: float) -> None:
    assert compute_backoff(failures, error, jitter=1.0) == seconds


def test_who_failed_together_comes_back_spread() -> None:
    assert compute_backoff(4, NO_RESPONSE, jitter=0.0) == 2.0
    assert compute_backoff(4, NO_RESPONSE, jitter=0.5) == 3.0
