"""Verb and resource of requests, as metrics name them."""

import pytest

from muster.clients.kubernetes.request_labels import find_resource, find_verb
from muster.clients.request_counter import RequestCounter
from muster.objects.kubernetes.kinds import JOBS, PODS, VALIDATING_WEBHOOKS


@pytest.mark.parametrize(
    ("method", "path", "query", "verb", "resource"),
    [
        ("GET", PODS.build_path(None), {"watch": "true"}, "watch", "pods"),
        ("GET", PODS.build_path("team"), {"limit": 500}, "list", "pods"),
        ("GET", PODS.build_path("team", "pods"), {}, "get", "pods"),
        ("GET", PODS.build_path("team", "a", "log"), {"follow": "true"}, "get", "pods/log"),
        ("POST", PODS.build_path("team"), {}, "create", "pods"),
        ("DELETE", PODS.build_path("team", "a"), {}, "delete", "pods"),
        ("PATCH", JOBS.build_path("team", "a", "status"), {}, "patch", "distributedtrainingjobs/status"),
        ("PATCH", JOBS.build_path("team", "a"), {}, "patch", "distributedtrainingjobs"),
        ("PUT", VALIDATING_WEBHOOKS.build_path(None, "a"), {}, "update", "validatingwebhookconfigurations"),
        ("GET", "/openid/v1/jwks", {}, "list", "other"),
        ("GET", "/", {}, "list", "other"),
        ("GET", "/api/v1/namespaces/team", {}, "get", "other"),
    ],
)
def test_a_request_has_the_name_that_kubernetes_gives_it(
    method: str, path: str, query: dict[str, str | int], verb: str, resource: str
) -> None:
    assert (find_verb(method, path, query), find_resource(path)) == (verb, resource)


def test_codes_are_those_of_http() -> None:
    counter = RequestCounter()
    for status in (200, 200, 0, -1, 99999):
        counter.count("get", "pods", status)
    assert counter.counts() == {("get", "pods", "200"): 2, ("get", "pods", "none"): 3}
