"""Refusals of a real API server (1.34), and the resulting messages for a job's owner."""

import time

import pytest

from muster.api.document import JSON
from muster.core.problem import Problem
from muster.diagnose.kubernetes.refusals import Refusal, read_refusal
from muster.objects.kubernetes.errors import NO_RESPONSE, ApiError, Cause
from unit.render.kubernetes.cluster_jobs import cluster_job, rendered

FORBIDDEN = 'pods "vit-0-0" is forbidden: '


def _refusal(error: ApiError, **spec: JSON) -> Refusal | None:
    job = cluster_job(**spec)
    return read_refusal(error, rendered(job), job)


def _no(message: str, status: int = 403, *causes: Cause) -> ApiError:
    return ApiError(status, {403: "Forbidden", 422: "Invalid"}.get(status, "BadRequest"), message, causes=causes)


def _because(field: str, message: str) -> ApiError:
    return _no(f'Pod "vit-0-0" is invalid: {field}: {message}', 422, Cause(field, message))


TERMINATING = "unable to create new content in namespace team because it is being terminated"
DENIED = "ValidatingAdmissionPolicy 'no-pods' with binding 'no-pods' denied request: every pod needs a label team"
DOWN = 'failed calling webhook "hook.acme": failed to call webhook: Post "https://10.0.0.1:1/x?timeout=2s": refused'


@pytest.mark.parametrize(
    ("error", "reason", "words"),
    [
        (
            _no(FORBIDDEN + "exceeded quota: team, requested: pods=1, used: pods=4, limited: pods=4"),
            "QuotaExceeded",
            "quota team is exceeded: asked for pods=1, used pods=4, limit pods=4",
        ),
        (
            _no(FORBIDDEN + "failed quota: team: must specify limits.cpu for: trainer"),
            "QuotaExceeded",
            "quota team requires every container to set limits.cpu for: trainer: set spec.resources",
        ),
        (
            _no(FORBIDDEN + 'violates PodSecurity "restricted:latest": runAsNonRoot != true (pod must set it)'),
            "PodSecurity",
            (
                "set securityContext in spec.template; it violates "
                'PodSecurity "restricted:latest": runAsNonRoot != true (pod must set it)'
            ),
        ),
        (
            _no('admission webhook "images.acme" denied the request: only our registry', 400),
            "AdmissionRefused",
            "admission webhook images.acme refuses it: only our registry",
        ),
        (
            _no(
                'admission webhook "validatepod.volcano.sh" denied the request: failed to create pod <team/vit-0-0> as '
                "the podgroup phase is Pending"
            ),
            "SchedulingGated",
            "Volcano has not admitted the job yet: its PodGroup is Pending",
        ),
        (
            _no(FORBIDDEN + DENIED, 422, Cause("", DENIED)),
            "AdmissionRefused",
            "admission policy no-pods refuses it: every pod needs a label team",
        ),
        (
            ApiError(500, "InternalError", f"Internal error occurred: {DOWN}"),
            "AdmissionRefused",
            'admission webhook hook.acme doesn\'t answer: failed to call webhook: Post "https://10.0.0.1:1/x": refused',
        ),
        (
            _no(FORBIDDEN + "maximum cpu usage per Container is 1, but limit is 4"),
            "AdmissionRefused",
            "the cluster refuses it: maximum cpu usage per Container is 1, but limit is 4",
        ),
        (
            _no(FORBIDDEN + "no PriorityClass with name nope was found"),
            "AdmissionRefused",
            "the cluster refuses it: no PriorityClass with name nope was found",
        ),
        (_no(FORBIDDEN + TERMINATING), "NamespaceTerminating", "namespace team is being deleted"),
        (
            ApiError(404, "NotFound", 'namespaces "team" not found'),
            "NamespaceTerminating",
            "namespace team is being deleted",
        ),
        (
            _no(FORBIDDEN + 'error looking up service account team/sa: serviceaccount "sa" not found'),
            "ServiceAccountMissing",
            "ServiceAccount sa doesn't exist in namespace team: create it",
        ),
        (
            _no(
                'pods is forbidden: User "system:serviceaccount:muster:operator" cannot create resource "pods" '
                'in API group "" in the namespace "team"'
            ),
            "Forbidden",
            "muster may not create pods in namespace team: the cluster's administrator has to allow it",
        ),
    ],
)
def test_what_may_pass(error: ApiError, reason: str, words: str) -> None:
    refusal = _refusal(error)
    assert refusal is not None
    assert (refusal.problem.reason, refusal.problem.message, refusal.is_final) == (reason, words, False)


@pytest.mark.parametrize(
    ("error", "spec", "words"),
    [
        (
            _no(
                'Pod in version "v1" cannot be handled as a Pod: strict decoding error: unknown field '
                '"spec.containers[0].imagePullPolcy", unknown field "spec.nodeSelectr"',
                400,
            ),
            {},
            (
                "spec.template.spec.containers[trainer].imagePullPolcy: unknown field; "
                "spec.template.spec.nodeSelectr: unknown field"
            ),
        ),
        (
            _because("spec.containers[0].env[0].valueFrom.secretKeyRef.key", "Required value"),
            {"env": [{"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "a"}}}]},
            "spec.env[KEY].valueFrom.secretKeyRef.key: Required value",
        ),
        (
            _because("spec.containers[0].resources.requests", 'Invalid value: "2": must be equal to the limit of 1'),
            {"resources": {"limits": {"nvidia.com/gpu": 1}, "requests": {"nvidia.com/gpu": 2}}},
            'spec.resources.requests: Invalid value: "2": must be equal to the limit of 1',
        ),
        (
            _because("spec.containers[0].resources.requests", "Invalid value"),
            {},
            "spec.template.spec.containers[trainer].resources.requests: Invalid value",
        ),
        (
            _no(
                "invalid",
                422,
                Cause("spec.containers[0].resources.limits[cpu]", "Invalid value"),
                Cause("spec.initContainers[0].resources.limits[cpu]", "Invalid value"),
                Cause("spec.initContainers[1].resources.limits[cpu]", "Invalid value"),
            ),
            {
                "agent": {"inject": "InitContainer"},
                "resources": {"limits": {"cpu": "1x"}},
                "template": {"spec": {"initContainers": [{"name": "fetch", "resources": {"limits": {"cpu": "1x"}}}]}},
            },
            (
                "spec.resources.limits[cpu]: Invalid value; "
                "spec.template.spec.initContainers[fetch].resources.limits[cpu]: Invalid value"
            ),
        ),
        (_because("metadata.labels", "Invalid value"), {}, "spec.template.metadata.labels: Invalid value"),
        (
            _no(
                'Pod in version "v1" cannot be handled as a Pod: json: cannot unmarshal number into Go struct field '
                "EnvVar.spec.containers.env.value of type string",
                400,
            ),
            {},
            (
                "the API server can't read the object: json: cannot unmarshal number into Go struct field "
                "EnvVar.spec.containers.env.value of type string"
            ),
        ),
        (
            _no("invalid", 422, *(Cause(f"spec.a{number}", "wrong") for number in range(8))),
            {},
            "; ".join([*(f"spec.template.spec.a{number}: wrong" for number in range(5)), "and 3 more"]),
        ),
    ],
)
def test_what_only_another_spec_changes(error: ApiError, spec: dict[str, JSON], words: str) -> None:
    assert _refusal(error, **spec) == Refusal(Problem("InvalidObject", words), is_final=True)


@pytest.mark.parametrize(
    "error",
    [
        ApiError(NO_RESPONSE, "NoAnswer", "connection reset"),
        ApiError(409, "Conflict", "the object has been modified"),
        ApiError(409, "AlreadyExists", 'pods "vit-0-0" already exists'),
        ApiError(429, "TooManyRequests", "try again later", retry_after=1.0),
        ApiError(500, "InternalError", "etcdserver: request timed out"),
        ApiError(503, "ServiceUnavailable", "no endpoints"),
        ApiError(401, "Unauthorized", "Unauthorized"),
    ],
)
def test_what_says_nothing_about_the_job_is_tried_again(error: ApiError) -> None:
    assert _refusal(error) is None


def test_no_field_however_odd_disturbs_the_reading() -> None:
    for field in ("spec.containers[99].x", "spec.containers[a][b]", "[]", "spec.nodeSelector[a/b.c]", "..", ""):
        refusal = _refusal(_no("invalid", 422, Cause(field, "wrong")))
        assert refusal is not None


@pytest.mark.parametrize(
    "message",
    [
        "exceeded quota: a, requested: b" + ", used: c" * 100_000,
        "exceeded quota: a, requested: b, used: " * 30_000,
        "failed quota: " * 80_000,
        'admission webhook "' * 60_000,
        "[" * 1_000_000,
    ],
)
def test_what_a_pod_is_quoted_with_takes_no_time(message: str) -> None:
    causes = [Cause("spec.tolerations[0]" + "[" * 200, message[:1000])] * 5000
    variables: list[JSON] = [{"name": f"A{number}", "value": ""} for number in range(256)]
    began = time.thread_time()
    refusal = _refusal(_no(message, 422, *causes), env=variables)
    assert time.thread_time() - began < 1.0
    assert refusal is not None
    assert refusal.problem.message.endswith(" more")
