"""Reports about other pods than the sender: each is refused, and the status does not change."""

import base64
import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

from cluster.images import PULL_POLICY, PYTHON_IMAGE
from cluster.installed.awaited import until
from cluster.operator.cluster_jobs import FOREVER
from cluster.operator.site import Site
from cluster.security.intruder import OWN, WORDS, Ask, Place, ask, collector, failure_of
from cluster.shared import Manifest
from muster_worker.contract.schema import TOKEN_AUDIENCE

VICTIM = "victim-0-0"
SETTLED_SECONDS = 120.0
RANKS = 2


@dataclass(frozen=True)
class Scene:
    """Two running jobs, a third whose pod was replaced, and pods of other users.

    `victim` is its node 0, whose status must not change; `former` is the token of the earlier pod of `moved`.
    """

    site: Site
    victim: Place
    beside: Place
    other: Place
    former: str

    def token(self, pod: str, audience: str = TOKEN_AUDIENCE) -> str:
        """Return the token that the API server issues to a user with permission; "": for no pod, or for itself."""
        bound = ("--bound-object-kind=Pod", f"--bound-object-name={pod}") if pod else ()
        audiences = (f"--audience={audience}",) if audience else ()
        return self.site.jobs.run("create", "token", "default", *audiences, *bound).strip()


@pytest.fixture(scope="module")
def scene(guarded: Site) -> Iterator[Scene]:
    jobs = guarded.jobs
    for name, nodes in (("victim", RANKS), ("other", 1), ("moved", 1)):
        jobs.apply(name, FOREVER, nodes=nodes, procsPerNode=1)
    for name, ranks in (("moved", 1), ("victim", RANKS), ("other", 1)):
        jobs.wait(name, f"jsonpath={{.status.ranks.running}}={ranks}")
    former = jobs.run("exec", "moved-0-0", "--container=trainer", "--", "cat", "/muster/token").strip()
    jobs.patch("moved", suspend=True)
    jobs.wait("moved", "condition=Suspended")
    jobs.patch("moved", suspend=False)
    uids = {name: jobs.resource(name)["metadata"]["uid"] for name in ("victim", "other", "moved")}
    guarded.kubectl.apply(*(_others_pod(guarded, name, uids["victim"]) for name in ("stranger", "victim-0-1")))
    jobs.wait("moved", "jsonpath={.status.phase}=Running")
    guarded.kubectl.wait("condition=Ready", f"--namespace={guarded.namespace}", "pod/stranger", "pod/victim-0-1")
    victim = Place(uids["victim"])
    yield Scene(guarded, victim, Place(uids["victim"], 1), Place(uids["other"]), former)
    jobs.run("delete", "dtj", "victim", "other", "moved", "--ignore-not-found", "--wait=false")
    jobs.run("delete", "pod", "stranger", "victim-0-1", "--grace-period=1", "--wait=false")


def _others_pod(site: Site, name: str, job_uid: str) -> Manifest:
    """Return a pod created by a user with permission for it; with a name like muster's, it has all the labels, too."""
    labels = {"job": "victim", "job-uid": job_uid, "node": "0", "replacement": "1"}
    token = {"audience": TOKEN_AUDIENCE, "path": "token"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": site.namespace,
            "labels": {f"muster.dev/{key}": value for key, value in labels.items()} if name != "stranger" else {},
        },
        "spec": {
            "containers": [
                {
                    "name": "trainer",
                    "image": PYTHON_IMAGE,
                    "imagePullPolicy": PULL_POLICY,
                    "command": ["sleep", "600"],
                    "volumeMounts": [{"name": "muster", "mountPath": "/muster"}],
                }
            ],
            "volumes": [{"name": "muster", "projected": {"sources": [{"serviceAccountToken": token}]}}],
        },
    }


def _signed_by_somebody_else(token: str) -> str:
    """Return a valid token and key name with an invalid signature."""
    claims = jwt.decode(token, options={"verify_signature": False})
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    return jwt.encode(claims, key, algorithm="RS256", headers={"kid": jwt.get_unverified_header(token)["kid"]})


def _signed_by_nobody(token: str) -> str:
    head = {"alg": "none", "typ": "JWT", "kid": jwt.get_unverified_header(token)["kid"]}
    return f"{base64.urlsafe_b64encode(json.dumps(head).encode()).decode().rstrip('=')}.{token.split('.')[1]}."


def _made_longer(token: str) -> str:
    """Return the token claims to be valid for years, with the signature of a token that was valid for an hour."""
    head, body, signature = token.split(".")
    claims = jwt.decode(token, options={"verify_signature": False}) | {"exp": int(time.time()) + 10**8}
    body = base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
    return f"{head}.{body}.{signature}"


IMPOSSIBLE, UNAUTHORIZED, FORBIDDEN, UNKNOWN = 400, 401, 403, 503
"""UNKNOWN: the pod isn't muster's, or not known yet; the answer doesn't say which."""


@dataclass(frozen=True)
class Case:
    """The sender, its token, the claimed node, and the expected answer."""

    pod: str
    token: Callable[[Scene], str | None]
    place: Callable[[Scene], Place]
    answer: int
    changed: tuple[str, str] = (WORDS, WORDS)

    def body(self, scene: Scene) -> str:
        """Return the report."""
        return failure_of(self.place(scene)).replace(*self.changed)


def victim(scene: Scene) -> Place:
    return scene.victim


CASES = {
    "no token": Case(VICTIM, lambda _: None, victim, UNAUTHORIZED),
    "no token's form": Case(VICTIM, lambda _: "admin", victim, UNAUTHORIZED),
    "another audience": Case(VICTIM, lambda scene: scene.token(VICTIM, "vault"), victim, UNAUTHORIZED),
    "the API server's audience": Case(
        VICTIM,
        lambda scene: scene.token(VICTIM, ""),
        victim,
        UNAUTHORIZED,
    ),
    "an account's, and no pod's": Case(VICTIM, lambda scene: scene.token(""), victim, UNAUTHORIZED),
    "signed by somebody else": Case(
        VICTIM, lambda scene: _signed_by_somebody_else(scene.token(VICTIM)), victim, UNAUTHORIZED
    ),
    "signed by nobody": Case(VICTIM, lambda scene: _signed_by_nobody(scene.token(VICTIM)), victim, UNAUTHORIZED),
    "made longer": Case(VICTIM, lambda scene: _made_longer(scene.token(VICTIM)), victim, UNAUTHORIZED),
    "of another node": Case("victim-1-0", lambda _: OWN, victim, FORBIDDEN),
    "of another job": Case("other-0-0", lambda _: OWN, victim, FORBIDDEN),
    "another pod's token": Case(VICTIM, lambda scene: scene.token("other-0-0"), victim, FORBIDDEN),
    "another replacement": Case(VICTIM, lambda _: OWN, lambda scene: Place(scene.victim.job_uid, 0, 1), FORBIDDEN),
    "a node that the job hasn't": Case(VICTIM, lambda _: OWN, lambda scene: Place(scene.victim.job_uid, 7), FORBIDDEN),
    "a replaced pod's token": Case("moved-0-1", lambda scene: scene.former, victim, UNKNOWN),
    "a pod that isn't muster's": Case("stranger", lambda _: OWN, victim, UNKNOWN),
    "the labels without the owner": Case(
        "victim-0-1", lambda _: OWN, lambda scene: Place(scene.victim.job_uid, 0, 1), UNKNOWN
    ),
    "a rank of another node": Case(
        "victim-1-0", lambda _: OWN, lambda scene: scene.beside, IMPOSSIBLE, ('"rank":1', '"rank":0')
    ),
}


@dataclass(frozen=True)
class Attack:
    """The answer to each case, and the victim's status before and after all cases."""

    answers: Mapping[str, tuple[int, str]]
    before: object
    after: object


@pytest.fixture(scope="module")
def attack(scene: Scene) -> Attack:
    """Run all cases, those of one pod together, because entering a pod takes a while."""
    # The status says only after 30 s that steps can't be counted, and names the first of the ranks that have said so.
    until(
        lambda: [each["node"] for each in scene.site.jobs.status("victim")["ranks"].get("details", ())] == [0],
        SETTLED_SECONDS,
    )
    before = scene.site.jobs.status("victim")
    answers: dict[str, tuple[int, str]] = {}
    target = collector(scene.site, "victim")
    for pod in {case.pod for case in CASES.values()}:
        cases = {name: case for name, case in CASES.items() if case.pod == pod}
        requests = [Ask(case.token(scene), case.body(scene)) for case in cases.values()]
        answers |= dict(zip(cases, ask(scene.site, pod, target, requests), strict=True))
    return Attack(answers, before, scene.site.jobs.status("victim"))


@pytest.mark.parametrize("name", CASES)
def test_it_is_refused(attack: Attack, name: str) -> None:
    answer, words = attack.answers[name]
    assert (answer, WORDS in words) == (CASES[name].answer, False), words


def test_it_changes_nothing(attack: Attack) -> None:
    assert attack.before == attack.after


def test_what_a_pod_says_of_itself_is_believed(scene: Scene, attack: Attack) -> None:
    del attack  # this one ends the victim
    ((answer, words),) = ask(scene.site, VICTIM, collector(scene.site, "victim"), [Ask(OWN, failure_of(scene.victim))])
    assert answer == 200, words
    scene.site.jobs.wait("victim", "condition=Failed")
    assert WORDS in scene.site.jobs.status("victim")["message"]
