import pytest

from muster.cli.errors import BadInput
from muster.cli.jobs.api_problems import explain_api_error
from muster.cli.jobs.job_reference import JobReference, check_names
from muster.objects.kubernetes.errors import NO_RESPONSE, ApiError

NO_JOB = ApiError(404, "NotFound", 'distributedtrainingjobs.muster.dev "digits" not found')
NO_KIND = ApiError(404, "NotFound", "404 page not found")
NO_VERSION = ApiError(404, "NotFound", "the server could not find the requested resource")
NO_RIGHT = ApiError(403, "Forbidden", 'User "ann" cannot get resource "distributedtrainingjobs"')
NOBODY = ApiError(401, "Unauthorized", "Unauthorized")
AWAY = ApiError(NO_RESPONSE, "NoAnswer", "no answer from https://cluster.example")


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (
            NO_JOB,
            "there is no DistributedTrainingJob digits in the namespace team-a; `kubectl get dtj --all-namespaces`",
        ),
        (NO_KIND, "the cluster has no DistributedTrainingJobs: muster isn't installed there"),
        (NO_VERSION, "the cluster has no DistributedTrainingJobs: muster isn't installed there"),
        (NO_RIGHT, 'the cluster denies the request: User "ann" cannot get'),
        (NOBODY, "the cluster doesn't accept your credentials: Unauthorized; `kubectl auth whoami`"),
        (AWAY, "the cluster doesn't answer: no answer from https://cluster.example"),
    ],
)
def test_what_an_answer_means(error: ApiError, said: str) -> None:
    assert explain_api_error(error, "team-a", "digits").startswith(said)


@pytest.mark.parametrize("name", ["", "Digits", "a/b", "digits.", "x" * 41, "-f"])
def test_what_cannot_be_a_jobs_name_is_not_asked_for(name: str) -> None:
    with pytest.raises(BadInput, match="is not a job's name"):
        check_names(JobReference(name))


@pytest.mark.parametrize("namespace", ["", "Team", "a/b", "x" * 64])
def test_what_cannot_be_a_namespace_is_not_asked_for(namespace: str) -> None:
    with pytest.raises(BadInput, match="--namespace"):
        check_names(JobReference("digits", namespace))


def test_good_names_pass() -> None:
    check_names(JobReference("digits", "0-team"))
    check_names(JobReference("d" * 40))
