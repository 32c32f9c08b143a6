"""A tenant's attacks on an operator of the whole cluster don't affect another tenant's job."""

import os
import time
import uuid
from collections.abc import Iterator

import pytest

from cluster.helm import Helm
from cluster.installation import installed
from cluster.operator.cluster_jobs import FOREVER, Jobs
from cluster.say import say
from cluster.security.attacker import FUZZ
from cluster.security.attacks import ATTACKS
from cluster.security.hostile_pods import fuzzed_reports, hostile_pods
from cluster.security.siege import LIMIT, STANDING, Siege
from cluster.security.watchman import Watched
from cluster.shared import Kubectl, SharedCluster
from muster.clients.kubernetes.election import GIVE_UP_SECONDS

pytestmark = [pytest.mark.alone, pytest.mark.timeout(600)]

SLOWER = 1.5
"""The allowed factor by which a job takes longer while another tenant attacks.

Compared with an undisturbed one, or with an Indexed Job in the same attack, which shows the load of API server and
nodes.
"""

HEALTH_SECONDS = 1.0
RATE = 20.0
"""Requests a second of one attack alone."""

FIRST = ("deep-spec", "deep-pod", "deep-job-fields", "deep-events", "ranges", "regexes", "big-jobs")
FIRST_RATE = 2.0
TOGETHER_RATE = 0.1
"""The rate of each attack when all run: more is too much for the API server, which shares two cores with everything
else.
"""

HEAD_START_SECONDS = 8.0
"""The time for an attack to reach its full rate."""

CLEAR_SECONDS = 120

FUZZ_SECONDS = float(os.environ.get("MUSTER_FUZZ_SECONDS", "120"))
FUZZ_SEED = os.environ.get("MUSTER_FUZZ_SEED")
FUZZ_RATE = 15.0


@pytest.fixture(scope="module")
def siege(shared_cluster: SharedCluster) -> Iterator[Siege]:
    """No other job is on the cluster: this operator would run those of other tests, too."""
    shared_cluster.up()
    kubectl = Kubectl(shared_cluster.kubeconfig)
    if kubectl("get", "crd", "distributedtrainingjobs.muster.dev", "--ignore-not-found"):
        kubectl("delete", "dtj", "--all", "--all-namespaces", f"--timeout={CLEAR_SECONDS}s")
    victim = f"victim-{uuid.uuid4().hex[:6]}"
    kubectl("create", "namespace", victim)
    try:
        with installed(shared_cluster, kubectl, Helm(shared_cluster.kubeconfig), {"namespaces": []}) as release:
            kubectl.wait("create", "serviceaccount/default", f"--namespace={victim}")
            jobs = Jobs(kubectl, victim)
            jobs.apply(STANDING, FOREVER, nodes=2, procsPerNode=1, resources={"requests": {"cpu": "10m"}})
            jobs.wait(STANDING, "jsonpath={.status.phase}=Running")
            yield Siege(release, victim)
            jobs.run("delete", f"dtj/{STANDING}")
    finally:
        kubectl("delete", "namespace", victim, "--wait=false")


@pytest.fixture(scope="module")
def undisturbed(siege: Siege) -> float:
    """Return the time of the victim's job without an attack. The first one is slower."""
    siege.victims_seconds()
    return max(siege.victims_seconds() for _ in range(2))


@pytest.mark.long
@pytest.mark.attack
@pytest.mark.parametrize("name", ATTACKS)
def test_one_attack(siege: Siege, undisturbed: float, name: str) -> None:
    with siege.evil() as evil:
        took, _ = besiege(siege, undisturbed, evil, name, (name,), RATE)
    assert took <= SLOWER * undisturbed, siege.victims_story()


@pytest.mark.long
def test_the_first_attacks_together(siege: Siege, undisturbed: float) -> None:
    """Each of these attacks alone once stopped the operator for the whole cluster."""
    with siege.evil() as evil:
        took, plain = besiege(siege, undisturbed, evil, "the first together", FIRST, FIRST_RATE)
    assert took <= allowed(undisturbed, plain), siege.victims_story()


@pytest.mark.long
def test_all_attacks_together(siege: Siege, undisturbed: float) -> None:
    with siege.evil() as evil, hostile_pods(siege.kubectl, evil):
        took, plain = besiege(siege, undisturbed, evil, "all together", tuple(ATTACKS), TOGETHER_RATE)
    assert took <= allowed(undisturbed, plain), siege.victims_story()


@pytest.mark.long
@pytest.mark.timeout(FUZZ_SECONDS + 600)
def test_chance(siege: Siege, undisturbed: float) -> None:
    """Random requests: set MUSTER_FUZZ_SECONDS for a longer test, MUSTER_FUZZ_SEED to repeat one."""
    seed = int(FUZZ_SEED) if FUZZ_SEED else uuid.uuid4().int % 10**9
    say(f"fuzz: seed {seed}, {FUZZ_SECONDS:.0f} s (MUSTER_FUZZ_SEED={seed} does the same again)")
    with (
        siege.evil() as evil,
        siege.watched() as seen,
        fuzzed_reports(siege.kubectl, evil, seed),
        siege.attacked(evil, (FUZZ,), FUZZ_RATE, seed) as answers,
    ):
        ends = time.monotonic() + FUZZ_SECONDS
        taken = []
        while time.monotonic() < ends:
            taken.append(siege.victims_seconds())
        # Their times are random, too: `victims_seconds` asserts that each job succeeded.
        judge(siege, seen, f"fuzz {seed}", max(taken), undisturbed)
    say(f"fuzz: {sum(answers.values())} requests, {len(taken)} jobs of the victim's: {answers}")


def besiege(
    siege: Siege, undisturbed: float, evil: str, what: str, names: tuple[str, ...], rate: float
) -> tuple[float, float]:
    """Attack; return the time of a job of the victim's, and then of an Indexed Job of the same containers."""
    attack = siege.attacked(evil, names, rate, head_start=HEAD_START_SECONDS)
    with siege.watched() as seen, attack as answers:
        took, plain = compare(siege, undisturbed)
        judge(siege, seen, what, took, undisturbed)
    say(f"{what}: an Indexed Job {plain:.1f} s; {dict(sorted(answers.items()))}")
    return took, plain


def compare(siege: Siege, undisturbed: float) -> tuple[float, float]:
    """Return the seconds of a job of the victim's and of an Indexed Job, both during the attack.

    One that takes too long is measured again: a moment at which the machine is slow is no success of the attack.
    """
    took, plain = siege.victims_seconds(), siege.plain_seconds()
    if took <= allowed(undisturbed, plain):
        return took, plain
    return min(took, siege.victims_seconds()), max(plain, siege.plain_seconds())


def allowed(undisturbed: float, plain: float) -> float:
    """Return the allowed seconds of a job of the victim's."""
    return SLOWER * max(undisturbed, plain)


def judge(siege: Siege, seen: Watched, what: str, took: float, undisturbed: float) -> None:
    """Print the observations, and assert the limits."""
    unrenewed = seen.longest_without_renewal(time.time())
    restarts, traces = siege.restarts(), siege.said().count("Traceback")
    say(
        f"{what}: victim {took:.1f} s of {undisturbed:.1f} s, {took / undisturbed:.2f}x; Lease {len(seen.holders)}"
        f" holder(s), {unrenewed:.1f} s without renewal; health {seen.slowest_health:.2f} s, {len(seen.unhealthy)}"
        f" bad; {seen.memory / 2**20:.0f} MiB; {restarts} restarts, {traces} tracebacks"
    )
    assert (len(seen.holders), restarts, traces, seen.unhealthy) == (1, 0, 0, [])
    assert unrenewed < GIVE_UP_SECONDS
    assert seen.slowest_health <= HEALTH_SECONDS
    assert seen.memory < LIMIT
