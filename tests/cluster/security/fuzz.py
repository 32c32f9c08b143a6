"""Random requests of a tenant: valid and invalid jobs, pods, Events, ConfigMaps, and changes of them. Pure.

The same seed gives the same requests.
"""

import random
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from cluster.security.attacks import ATTACKS, Prey
from cluster.security.hostile_objects import event, job, pod, text, with_deep_fields
from cluster.security.tenant import CONFIG_MAPS, CREATE, DELETE, EVENTS, JOBS, PATCH, PODS, Call

NAMES = 40
"""The maximum number of objects of a kind: names are reused with other contents."""

_HEAVY = frozenset(("big-jobs", "big-strings", "big-pods", "wide-jobs", "real-pods"))
"""Attacks with large requests are rare, because they would use up all the time."""

Json = Any


def fuzz(chance: random.Random, prey: Prey) -> Iterator[Call]:
    """Yield random requests without an end."""
    running = {name: attack(random.Random(chance.random()), prey) for name, attack in ATTACKS.items()}  # noqa: S311
    while True:
        if chance.random() < _ATTACK_SHARE:
            name = chance.choice(sorted(running))
            call = None if name in _HEAVY and chance.random() < _HEAVY_SKIPPED else next(running[name], None)
            if call is not None:
                yield call
            continue
        yield chance.choice(_WAYS)(chance, prey)


_ATTACK_SHARE = 0.2
_HEAVY_SKIPPED = 0.8


def value(chance: random.Random, depth: int = 4) -> Json:
    """Any JSON value, mostly small."""
    kind = chance.randrange(9 if depth else 7)
    simple: tuple[Callable[[], Json], ...] = (
        lambda: None,
        lambda: chance.random() < 0.5,
        lambda: chance.choice((0, 1, -1, 2, 64, 10_000, 2**31, 2**53, -(2**63))),
        lambda: chance.choice((0.5, 1e308, -1e-300, 3.0)),
        lambda: word(chance),
        lambda: word(chance),
        lambda: str(chance.randrange(100)),
    )
    if kind < len(simple):
        return simple[kind]()
    size = chance.choice((0, 1, 2, 5, 50))
    if kind == len(simple):
        return [value(chance, depth - 1) for _ in range(size)]
    return {word(chance): value(chance, depth - 1) for _ in range(size)}


def word(chance: random.Random) -> str:
    """Return a text: meaningful names, and texts that often cause problems."""
    return chance.choice(
        (
            *("", "trainer", "x", "0", "0-9", "1,2,3", "algo-1", "True", "null", "s3://b/k", "${X}", "../../etc"),
            *("\u0000", "\ud7ff", "\u202e", "\u001b[31m", "é" * 200, "x" * 5_000, "a.b/c", "-", "{{", "%s", "\r\n"),
            *("(a+)+$", "[", "(?i)[a-\uffff]{1,99}", "nvidia.com/gpu", "1Gi", "-1", "1e9", "100m"),
            "".join(chance.choices("abc-./ {}[]$\\\"'\u00e9\U0001f600", k=chance.randrange(30))),
        )
    )


_SPEC: Mapping[str, tuple[Json, ...]] = {
    "nodes": (1, 2, 8, 100, 10_000),
    "procsPerNode": (1, 8, "Auto"),
    "launcher": ({"torchrun": {}}, {"direct": {}}, {"perNode": {}}, {"mpi": {}}),
    "command": (["python3", "train.py"], ["mpirun", "-np", "2", "x"], ["bash", "-c", "x"]),
    "suspend": (True, False),
    "activeDeadlineSeconds": (1, 60, 10**9),
    "startupTimeoutSeconds": (1, 60),
    "env": ([{"name": "A", "value": "b"}], [{"name": "RANK", "value": "1"}]),
    "hyperparameters": ({"lr": 0.1, "layers": [1, 2]}, {}),
    "metrics": ([{"name": "loss", "regex": "loss=([0-9.]+)"}],),
    "resources": ({"limits": {"nvidia.com/gpu": 8}}, {"requests": {"cpu": "100"}}),
    "nodePool": ({"instanceType": "p5.48xlarge"}, {"name": "none"}),
    "nodeOverrides": ([{"nodes": "0-1", "template": {"spec": {"priority": 1}}}],),
    "backend": ("Kubernetes", "SageMaker"),
    "source": ({"configMap": "none"}, {"git": {"url": "https://example.com/x.git", "commit": "a" * 40}}),
    "inputs": ([{"name": "train", "uri": "s3://bucket/train"}],),
    "checkpoint": ("s3://bucket/c",),
    "output": ("s3://bucket/o",),
    "network": ({"interface": "eth0"}, {"efa": "All"}, {"check": True}),
    "queue": ("team",),
    "cleanPodPolicy": ("None",),
    "template": ({"spec": {"hostNetwork": True}}, {"metadata": {"labels": {"a": "b"}}}),
    "failurePolicy": ({"maxRestarts": 3},),
    "agent": ({"inject": "InitContainer"},),
    "unknown": (1,),
}


def _spec(chance: random.Random) -> dict[str, Json]:
    """Some fields with valid values, some with nonsensical ones."""
    fields = chance.sample(sorted(_SPEC), chance.randrange(6))
    return {name: value(chance) if chance.random() < 0.3 else chance.choice(_SPEC[name]) for name in fields}


def _name(chance: random.Random) -> str:
    return f"fuzz-{chance.randrange(NAMES)}"


def _metadata(chance: random.Random) -> dict[str, Json]:
    if chance.random() < 0.6:
        return {}
    return {
        "labels": {f"l{number}": str(number) for number in range(chance.randrange(5))},
        "annotations": {f"a{number}": word(chance) for number in range(chance.randrange(5))},
        **({"finalizers": ["example.com/hold"]} if chance.random() < 0.1 else {}),
    }


def _create_job(chance: random.Random, _: Prey) -> Call:
    return Call(CREATE, JOBS, text(job(_name(chance), _metadata(chance), **_spec(chance))))


def _deep_job(chance: random.Random, _: Prey) -> Call:
    return Call(CREATE, JOBS, with_deep_fields(job(_name(chance)), chance.choice((10, 500, 2_000, 8_000))))


def _patch_job(chance: random.Random, _: Prey) -> Call:
    return Call(PATCH, f"{JOBS}/{_name(chance)}", text({"spec": _spec(chance), "metadata": _metadata(chance)}))


def _delete_job(chance: random.Random, _: Prey) -> Call:
    return Call(DELETE, f"{JOBS}/{_name(chance)}")


def _release_job(chance: random.Random, _: Prey) -> Call:
    return Call(PATCH, f"{JOBS}/{_name(chance)}", text({"metadata": {"finalizers": None}}))


def _create_pod(chance: random.Random, prey: Prey) -> Call:
    owner = {"apiVersion": "muster.dev/v1alpha1", "kind": "DistributedTrainingJob", "controller": True}
    name = chance.choice((_name(chance), f"{_name(chance)}-0-0", f"{prey.name}-0-0"))
    metadata = {
        **_metadata(chance),
        "labels": {"muster.dev/job-uid": prey.uid, "muster.dev/node": word(chance)[:5].strip("-./ ")},
        "ownerReferences": [{**owner, "name": prey.name, "uid": prey.uid}],
    }
    return Call(CREATE, PODS, text(pod(name, metadata if chance.random() < 0.7 else None)))


def _delete_pod(chance: random.Random, _: Prey) -> Call:
    name = chance.choice((_name(chance), f"{_name(chance)}-0-0"))
    return Call(DELETE, f"{PODS}/{name}", text({"gracePeriodSeconds": 0}))


def _create_event(chance: random.Random, prey: Prey) -> Call:
    kind = chance.choice(("Pod", "DistributedTrainingJob"))
    about = chance.choice((f"{prey.name}-0-0", _name(chance)))
    body = event(f"fuzz-{chance.getrandbits(64):x}", kind, about, prey.uid, word(chance)[:1000])
    return Call(CREATE, EVENTS, text(body))


def _create_config(chance: random.Random, _: Prey) -> Call:
    name = chance.choice(("none", f"{_name(chance)}-muster"))
    data = {f"k{number}": word(chance) for number in range(chance.randrange(5))}
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}
    return Call(CREATE, CONFIG_MAPS, text(body))


_WAYS: tuple[Callable[[random.Random, Prey], Call], ...] = (
    *(_create_job, _create_job, _create_job, _deep_job, _patch_job, _patch_job, _delete_job, _delete_job),
    *(_release_job, _create_pod, _create_pod, _delete_pod, _create_event, _create_config),
)
