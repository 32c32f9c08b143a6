"""A job's pod can connect to the collector with its own token, and to nothing else of the operator."""

from collections.abc import Iterator

import pytest

from cluster import chart
from cluster.images import PULL_POLICY
from cluster.operator.cluster_jobs import FOREVER
from cluster.operator.site import Site
from cluster.security.intruder import OWN, Ask, api_server, ask, collector

POD = "caged-0-0"
PROFILE = "pod-security.kubernetes.io/enforce"

RESTRICTED = {
    "spec": {
        "terminationGracePeriodSeconds": 6,
        "securityContext": {"runAsNonRoot": True, "runAsUser": 10001, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [
            {
                "name": "trainer",
                "imagePullPolicy": PULL_POLICY,
                "securityContext": {
                    "allowPrivilegeEscalation": False,
                    "readOnlyRootFilesystem": True,
                    "capabilities": {"drop": ["ALL"]},
                },
            }
        ],
    }
}


@pytest.fixture(scope="module")
def caged(guarded: Site) -> Iterator[Site]:
    """Yield a job in a namespace for restricted pods only, and another one outside."""
    guarded.kubectl("label", "namespace", guarded.namespace, f"{PROFILE}=restricted")
    try:
        for name in ("caged", "neighbour"):
            guarded.jobs.apply(name, FOREVER, nodes=1, procsPerNode=1, template=RESTRICTED)
        for name in ("caged", "neighbour"):
            guarded.jobs.wait(name, "jsonpath={.status.phase}=Running")
    finally:
        guarded.kubectl("label", "namespace", guarded.namespace, f"{PROFILE}-")
    yield guarded
    guarded.jobs.run("delete", "dtj", "caged", "neighbour", "--wait=false")


def test_the_collector_has_no_other_routes(caged: Site) -> None:
    paths = ("/", "/healthz", "/readyz", "/metrics", "/v1", "/v1/report/", "/v1/jobs", "/v1/command/other", "/debug")
    requests = [Ask(OWN, None, method, path) for path in paths for method in ("GET", "POST")]
    requests += [Ask(OWN, None, "GET", "/v1/report"), Ask(OWN, "{}", "POST", "/v1/command")]
    answers = ask(caged, POD, collector(caged, "caged"), requests)
    assert {status for status, _ in answers} == {404}
    unauthenticated = ask(caged, POD, collector(caged, "caged"), [Ask(None, None, "GET", path) for path in paths])
    assert {status for status, _ in unauthenticated} == {401}


def test_it_hears_its_own_commands_and_no_others(caged: Site) -> None:
    uid = caged.jobs.resource("neighbour")["metadata"]["uid"]
    own = Ask(OWN, None, "GET", "/v1/command?wait=0")
    others = [
        Ask(OWN, None, "GET", f"/v1/command?wait=0&{query}") for query in (f"job_uid={uid}", "node=0", "job=neighbour")
    ]
    (heard, words), *refused = ask(caged, POD, collector(caged, "caged"), [own, *others])
    assert heard == 200
    assert caged.jobs.resource("caged")["metadata"]["uid"] in words
    assert uid not in words
    assert {status for status, _ in refused} == {400}


def test_it_has_nothing_to_show_to_the_api_server(caged: Site) -> None:
    mounted = caged.jobs.run("exec", POD, "--container=trainer", "--", "sh", "-c", "ls /var/run/secrets || true")
    assert mounted == ""
    path = f"/api/v1/namespaces/{caged.namespace}/configmaps/neighbour-muster"
    answers = ask(caged, POD, api_server(caged), [Ask(OWN, None, "GET", path), Ask(None, None, "GET", path)])
    assert [status for status, _ in answers] in ([401, 403], [401, 401])


def test_the_agents_files_are_not_the_ranks_to_change(caged: Site) -> None:
    script = (
        "for file in plan.json agent.pyz token more; do (echo x > /muster/$file) 2>/dev/null && echo $file; done; true"
    )
    assert caged.jobs.run("exec", POD, "--container=trainer", "--", "sh", "-c", script) == ""


def test_the_network_policy_opens_the_collector_to_jobs_pods_and_nothing_else() -> None:
    objects = chart.render({"image": {"repository": "unused"}, "networkPolicy": {"enabled": True}})
    policy = chart.one(objects, "NetworkPolicy")["spec"]
    operator = chart.one(objects, "Deployment")["spec"]["template"]
    assert policy["policyTypes"] == ["Ingress"]
    assert policy["podSelector"]["matchLabels"].items() <= operator["metadata"]["labels"].items()
    collector, health = policy["ingress"]
    assert collector["ports"] == [{"port": "collector"}]
    (peer,) = collector["from"]
    assert peer["podSelector"] == {"matchExpressions": [{"key": "muster.dev/job-uid", "operator": "Exists"}]}
    assert health == {"ports": [{"port": "health"}]}  # the kubelet is no pod: no rule can select it
