"""Only the time between two consecutive refusals makes a row of refusals longer."""

import pytest

from muster.objects.aws import errors
from muster.objects.aws.refusal_streak import RefusalStreak

REFUSALS = (
    errors.AccessDenied("no", "sagemaker:StopTrainingJob", "arn"),
    errors.ExpiredCredentials("late"),
    errors.NoCredentials("none"),
    errors.Invalid("wrong"),
)
REFUSED = errors.ExpiredCredentials("late")
AWAY = errors.Unavailable("away")
SLOW = errors.Throttled("slow")
OTHER = errors.NotFound("where")


@pytest.mark.parametrize("error", REFUSALS, ids=[type(error).__name__ for error in REFUSALS])
def test_refusals_in_succession_count(error: errors.AwsError) -> None:
    assert RefusalStreak().add_failure(error, 10.0).add_failure(error, 70.0).seconds == 60.0


@pytest.mark.parametrize(
    ("tries", "seconds"),
    [
        pytest.param([(REFUSED, 0.0)], 0.0, id="one refusal"),
        pytest.param([(AWAY, 0.0), (REFUSED, 1200.0)], 0.0, id="one refusal after AWS was away"),
        pytest.param([(REFUSED, 0.0), (AWAY, 60.0), (REFUSED, 1200.0)], 0.0, id="AWS away between two"),
        pytest.param(
            [(REFUSED, 0.0), (REFUSED, 60.0), (SLOW, 90.0), (REFUSED, 120.0)], 60.0, id="kept over a throttle"
        ),
        pytest.param([(REFUSED, 0.0), (REFUSED, 60.0), (OTHER, 90.0), (REFUSED, 120.0)], 0.0, id="AWS let it in"),
        pytest.param([(REFUSED, 60.0), (REFUSED, 0.0)], 0.0, id="a clock that goes back"),
    ],
)
def test_what_counts(tries: list[tuple[errors.AwsError, float]], seconds: float) -> None:
    row = RefusalStreak()
    for error, at in tries:
        row = row.add_failure(error, at)
    assert row.seconds == seconds
