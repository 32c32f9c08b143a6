"""The collector's authorities in a Secret, on a real API server."""

import asyncio
import base64
import json
import time

import pytest

from cluster.shared import Kubectl
from muster.clients.kubernetes.client import Client
from muster.collector.server.refusal import RefusalReason, RequestRefused
from muster.collector.trust.authorities import AUTHORITY_SECONDS, PROPAGATION_SECONDS
from muster.collector.trust.certificate import ServingCertificate
from muster.controller.trust.trust import TrustManager, TrustSettings
from muster.objects.kubernetes.kinds import SECRETS
from muster_worker.contract.schema import TOKEN_AUDIENCE
from support.clock import Clock

SECRET = "muster-collector"


class Replica:
    """One operator's trust, and the certificates that it used."""

    def __init__(self, client: Client, namespace: str, clock: Clock) -> None:
        self.shown: list[ServingCertificate] = []
        settings = TrustSettings(namespace, SECRET, ["muster-collector.muster.svc"])
        self.trust = TrustManager(client, settings, self.shown.append, clock)


def authorities(kubectl: Kubectl, namespace: str) -> list[dict[str, object]]:
    secret = json.loads(kubectl("get", "secret", SECRET, "-n", namespace, "-o", "json"))
    result: list[dict[str, object]] = json.loads(base64.b64decode(secret["data"]["authorities.json"]))["authorities"]
    return result


async def test_replicas_that_start_together_agree(client: Client, namespace: str, kubectl: Kubectl) -> None:
    replicas = [Replica(client, namespace, Clock()) for _ in range(5)]

    await asyncio.gather(*(replica.trust.start() for replica in replicas))

    (only,) = authorities(kubectl, namespace)
    assert {replica.trust.get_ca_bundle() for replica in replicas} == {only["certificate"]}
    assert {replica.trust.get_certificate().authority for replica in replicas} == {only["certificate"]}
    assert len({replica.trust.get_certificate().key for replica in replicas}) == 5


async def test_an_authority_is_announced_then_signs_then_goes(client: Client, namespace: str, kubectl: Kubectl) -> None:
    clock = Clock()
    replicas = [Replica(client, namespace, clock) for _ in range(2)]
    for replica in replicas:
        await replica.trust.start()
    old = replicas[0].trust.get_ca_bundle()

    clock.now += AUTHORITY_SECONDS * 0.7
    await asyncio.gather(*(replica.trust.renew_if_due() for replica in replicas))
    both = [str(one["certificate"]) for one in authorities(kubectl, namespace)]
    assert both[0] == old
    assert len(both) == 2
    for replica in replicas:
        assert replica.trust.get_ca_bundle() == "".join(both)
        assert replica.trust.get_certificate().authority == old
        assert replica.shown == [replica.trust.get_certificate()]  # the authority was old enough to be renewed

    clock.now += PROPAGATION_SECONDS
    await replicas[0].trust.renew_if_due()
    assert replicas[0].trust.get_certificate().authority == both[1]
    assert len(replicas[0].shown) == 2

    clock.now += AUTHORITY_SECONDS * 0.3
    await replicas[0].trust.renew_if_due()
    assert replicas[0].trust.get_ca_bundle() == both[1]


async def test_a_deleted_secret_comes_back_as_it_was(client: Client, namespace: str, kubectl: Kubectl) -> None:
    replica = Replica(client, namespace, Clock())
    await replica.trust.start()
    before = authorities(kubectl, namespace)
    kubectl("delete", "secret", SECRET, "-n", namespace)

    await replica.trust.renew_if_due()

    assert authorities(kubectl, namespace) == before
    assert not replica.shown


async def test_a_secret_that_somebody_made_is_filled_and_keeps_what_it_has(
    client: Client, namespace: str, kubectl: Kubectl
) -> None:
    kubectl("create", "secret", "generic", SECRET, "-n", namespace, "--from-literal=note=theirs")
    kubectl("label", "secret", SECRET, "-n", namespace, "team=ml")
    replica = Replica(client, namespace, Clock())

    await replica.trust.start()

    secret = await client.get(SECRETS, namespace, SECRET)
    assert isinstance(secret["data"], dict)
    assert isinstance(secret["metadata"], dict)
    assert secret["data"]["note"] == base64.b64encode(b"theirs").decode()
    assert secret["metadata"]["labels"] == {"team": "ml"}
    assert authorities(kubectl, namespace)[0]["certificate"] == replica.trust.get_ca_bundle()


async def test_the_clusters_own_tokens_are_believed(client: Client, namespace: str, kubectl: Kubectl) -> None:
    replica = Replica(client, namespace, Clock())
    await replica.trust.start()
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "worker-0", "namespace": namespace},
        "spec": {"containers": [{"name": "trainer", "image": "none.invalid/none"}], "nodeName": "node-1"},
    }
    for _ in range(100):  # the namespace's service account appears a moment after it
        if kubectl("get", "serviceaccounts", "-n", namespace, "-o", "name"):
            break
        await asyncio.sleep(0.05)
    kubectl.apply(pod)
    uid = kubectl("get", "pod", "worker-0", "-n", namespace, "-o", "jsonpath={.metadata.uid}")

    def token(audience: str, *more: str) -> str:
        return kubectl("create", "token", "default", "-n", namespace, f"--audience={audience}", *more).strip()

    bound = ("--bound-object-kind=Pod", "--bound-object-name=worker-0")
    claim = replica.trust.verifier.verify(token(TOKEN_AUDIENCE, *bound), time.time())
    assert (claim.namespace, claim.pod_name, claim.pod_uid) == (namespace, "worker-0", uid)
    for forged, reason in (
        (token("somebody-else", *bound), RefusalReason.WRONG_AUDIENCE),
        (token(TOKEN_AUDIENCE), RefusalReason.BAD_TOKEN),  # a token of a service account, not of a pod
    ):
        with pytest.raises(RequestRefused) as refused:
            replica.trust.verifier.verify(forged, time.time())
        assert refused.value.reason is reason
    with pytest.raises(RequestRefused) as refused:
        replica.trust.verifier.verify(token(TOKEN_AUDIENCE, *bound), time.time() + 7200.0)
    assert refused.value.reason is RefusalReason.EXPIRED
