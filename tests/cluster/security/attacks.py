"""A tenant's attacks on the operator: each is a sequence of requests. Pure except for random numbers.

Endless ones continue until they are ended. The role `edit` in one namespace allows all of them.
"""

import itertools
import json
import random
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from cluster.security.hostile_objects import (
    DEEPEST,
    HERE,
    NOBODY,
    event,
    here,
    job,
    nested,
    nested_lists,
    pod,
    text,
    with_deep_fields,
)
from cluster.security.tenant import (
    CONFIG_MAPS,
    CREATE,
    DELETE,
    EVENTS,
    JOBS,
    LEASES,
    PATCH,
    PODS,
    REPLACE,
    SERVICES,
    Call,
)


@dataclass(frozen=True)
class Prey:
    """The target: another tenant's job, its namespace and its uid, as far as the attacker knows them."""

    namespace: str
    name: str
    uid: str


Attack = Callable[[random.Random, Prey], Iterator[Call]]

_FIELDS = 40
_LARGE = 1_400_000
_SAGEMAKER: dict[str, Any] = {
    "backend": "SageMaker",
    "sagemaker": {"instanceType": "ml.m5.large", "roleArn": "arn:aws:iam::111122223333:role/x"},
}


def deep_spec(_: random.Random, __: Prey) -> Iterator[Call]:
    """3,000 levels in the pod's template, which the CRD doesn't validate."""
    for number, levels in enumerate((300, 1_000, 3_000, DEEPEST)):
        body = job(f"deep-{number}", template={"spec": {"affinity": HERE}})
        yield Call(CREATE, JOBS, here(body, nested(levels)))
    for field in ("metadata", "spec"):
        yield Call(CREATE, JOBS, here(job(f"deep-in-{field}", template={field: HERE}), nested(DEEPEST)))
    yield Call(CREATE, JOBS, here(job("deep-list", template={"spec": {"tolerations": HERE}}), nested_lists(DEEPEST)))
    yield Call(CREATE, JOBS, here(job("deep-hyper", hyperparameters={"a": HERE}), nested(DEEPEST)))
    override = {"nodes": "0", "template": {"spec": HERE}}
    yield Call(CREATE, JOBS, here(job("deep-override", nodeOverrides=[override]), nested(DEEPEST)))


def deep_pod(_: random.Random, __: Prey) -> Iterator[Call]:
    """managedFields of a pod: no permission for muster's resources is needed."""
    for number, levels in enumerate((500, 3_000, DEEPEST)):
        yield Call(CREATE, PODS, with_deep_fields(pod(f"deep-{number}"), levels))


def deep_job_fields(_: random.Random, __: Prey) -> Iterator[Call]:
    """managedFields of jobs, at their creation and afterwards."""
    for number, levels in enumerate((500, 3_000, DEEPEST)):
        yield Call(CREATE, JOBS, with_deep_fields(job(f"deep-fields-{number}"), levels))
    yield Call(CREATE, JOBS, text(job("late")))
    yield Call(PATCH, f"{JOBS}/late", with_deep_fields(job("late"), DEEPEST))


def deep_events(_: random.Random, prey: Prey) -> Iterator[Call]:
    """managedFields of Events, about the tenant's own pods and about the target's."""
    for number, levels in enumerate((500, 3_000, DEEPEST)):
        body = event(f"deep-{number}", "Pod", f"{prey.name}-0-0", prey.uid, "x")
        yield Call(CREATE, EVENTS, with_deep_fields(body, levels))


def ranges(_: random.Random, __: Prey) -> Iterator[Call]:
    """10,000 nodes with 64 overrides that name one very often, or all of them, with as many characters as possible."""
    named = (",".join(["0"] * 128), ",".join(["0-9999"] * 36), ",".join(f"{number}-9999" for number in range(31)))
    for number, nodes in enumerate(named):
        overrides = [{"nodes": nodes, "template": {}} for _ in range(64)]
        # One of them would create 10,000 pods, which is too much for the cluster.
        spec: Mapping[str, Any] = {"nodes": 10_000, "nodeOverrides": overrides, "suspend": number > 0}
        yield Call(CREATE, JOBS, text(job(f"ranges-{number}", None, **spec)))


def regexes(chance: random.Random, __: Prey) -> Iterator[Call]:
    """Expressions that take long to compile, and some that take long to match."""
    klass = "[\u0001-\uffff]"
    hard = (
        f"(?i)({klass * 97}A)",
        "(?i)" + "".join(f"[{chr(number)}-\uffff]" for number in range(256, 356)),
        "(" * 80 + "a" + "{1,99})" * 80,
        "(a|aa)+" * 40 + "$",
        "|".join(f"{chr(97 + number % 26)}{{1,{number}}}" for number in range(1, 500)),
        "(?:" * 90 + "x" + ")*" * 90,
    )
    for number, regex in enumerate(hard):
        metrics = [{"name": f"m{index}", "regex": regex} for index in range(_FIELDS)]
        yield Call(CREATE, JOBS, text(job(f"regexes-{number}", metrics=metrics)))
    for number in range(10):
        varied = [
            {"name": f"m{index}", "regex": f"(?i)({klass * 90}{chance.randrange(9**9)})"} for index in range(_FIELDS)
        ]
        yield Call(CREATE, JOBS, text(job(f"regexes-new-{number}", metrics=varied)))


def big_jobs(_: random.Random, __: Prey) -> Iterator[Call]:
    """40 jobs of 1.4 MB each, which take a multiple of that in Python."""
    for number in range(40):
        body = job(f"big-{number}", template={"spec": {"affinity": HERE}})
        yield Call(CREATE, JOBS, here(body, f"[{','.join(['{}'] * 470_000)}]"))


def big_strings(_: random.Random, __: Prey) -> Iterator[Call]:
    """Yield the same size as one string, as many small ones, as keys, with repeated changes."""
    parts = (
        json.dumps("x" * _LARGE),
        text([""] * 300_000),
        "{" + ",".join(f'"{number}":1' for number in range(140_000)) + "}",
    )
    for number, what in enumerate(parts * 4):
        yield Call(CREATE, JOBS, here(job(f"strings-{number}", template={"spec": {"affinity": HERE}}), what))
    for turn in range(60):
        yield Call(PATCH, f"{JOBS}/strings-{turn % 12}", text({"metadata": {"labels": {"turn": str(turn)}}}))


def big_pods(_: random.Random, __: Prey) -> Iterator[Call]:
    """30 pods of nearly 1.5 MB with the labels of a job's."""
    for number in range(30):
        env = [{"name": f"V{index}", "value": "x" * 13_000} for index in range(100)]
        containers = [{"name": "trainer", "image": "x", "env": env}]
        yield Call(CREATE, PODS, text(pod(f"big-{number}", containers=containers)))


def big_annotations(_: random.Random, prey: Prey) -> Iterator[Call]:
    """Annotations of the maximum size, on jobs and pods; among them kopf's own, deeply nested."""
    large = {f"a{index}": "x" * 20_000 for index in range(12)}
    kopf = {"kopf.zalando.org/last-handled-configuration": nested(60_000), "muster.dev/spec-hash": nested(1_000)}
    for number in range(20):
        for annotations in (large, kopf):
            name = f"annotated-{number}-{len(annotations)}"
            owner = [_owner(prey.name, prey.uid)]
            yield Call(CREATE, JOBS, text(job(name, {"annotations": annotations})))
            yield Call(CREATE, PODS, text(pod(name, {"annotations": annotations, "ownerReferences": owner})))


def big_environment(_: random.Random, __: Prey) -> Iterator[Call]:
    """10,000 variables, as many arguments, 64 overrides with a large template each."""
    env = [{"name": f"V{number}", "value": "x"} for number in range(10_000)]
    yield Call(CREATE, JOBS, text(job("variables", env=env)))
    yield Call(CREATE, JOBS, text(job("in-template", template=_trainer(env=env))))
    yield Call(CREATE, JOBS, text(job("arguments", command=["x"] * 100_000)))
    yield Call(CREATE, JOBS, text(job("hyper", hyperparameters={f"h{number}": 1 for number in range(50_000)})))
    overrides = [{"nodes": str(number), "template": _trainer(env=env[:150])} for number in range(64)]
    yield Call(CREATE, JOBS, text(job("overrides", nodes=64, nodeOverrides=overrides)))
    wide = [{"nodes": f"{number}-9999", "template": _trainer(env=env[:10])} for number in range(64)]
    yield Call(CREATE, JOBS, text(job("wide-overrides", nodes=10_000, nodeOverrides=wide)))


def many_jobs(_: random.Random, __: Prey) -> Iterator[Call]:
    """Create a thousand small jobs: suspended, refused, and unschedulable ones."""
    for number in range(1_000):
        spec: Mapping[str, Any] = ({"suspend": True}, {"nodes": 0}, {"suspend": True, "nodes": 5_000}, {})[number % 4]
        yield Call(CREATE, JOBS, text(job(f"small-{number}", None, **spec)))


def wide_jobs(_: random.Random, __: Prey) -> Iterator[Call]:
    """Jobs of 10,000 nodes and 100,000 ranks, suspended and resumed, so that each reconciliation covers all of them."""
    for number in range(5):
        yield Call(CREATE, JOBS, text(job(f"wide-{number}", nodes=10_000, procsPerNode=10, suspend=True)))
    for turn in itertools.count():
        spec = {"suspend": turn % 2 == 1, "activeDeadlineSeconds": 1 + turn % 50}
        yield Call(PATCH, f"{JOBS}/wide-{turn % 5}", text({"spec": spec}))


def created_and_deleted(_: random.Random, __: Prey) -> Iterator[Call]:
    """Create and delete objects of the same names, so that the state of one object is wrong for the next."""
    for turn in itertools.count():
        name = f"again-{turn % 5}"
        yield Call(CREATE, JOBS, text(job(name, suspend=turn % 3 == 0)))
        yield Call(DELETE, f"{JOBS}/{name}", text({"propagationPolicy": ("Background", "Orphan")[turn % 2]}))


def never_gone(_: random.Random, __: Prey) -> Iterator[Call]:
    """Deleted jobs with a finalizer of the tenant's."""
    for number in range(50):
        yield Call(CREATE, JOBS, text(job(f"held-{number}", {"finalizers": ["example.com/hold"]})))
        yield Call(DELETE, f"{JOBS}/held-{number}")
    for turn in itertools.count():
        yield Call(PATCH, f"{JOBS}/held-{turn % 50}", text({"metadata": {"labels": {"turn": str(turn)}}}))


def labels_churn(_: random.Random, __: Prey) -> Iterator[Call]:
    """Endless changes of the labels of jobs and pods, including those that the operator reads."""
    for number in range(10):
        yield Call(CREATE, JOBS, text(job(f"churned-{number}", suspend=number % 2 == 0)))
        yield Call(CREATE, PODS, text(pod(f"churned-{number}")))
    for turn in itertools.count():
        labels = {"muster.dev/job-uid": str(turn), "muster.dev/node": str(turn % 7), "turn": str(turn)}
        many = {f"label-{index}": str(turn) for index in range(300)}
        for path in (JOBS, PODS):
            yield Call(PATCH, f"{path}/churned-{turn % 10}", text({"metadata": {"labels": {**labels, **many}}}))


def suspend_toggled(_: random.Random, __: Prey) -> Iterator[Call]:
    """Jobs that are started and stopped in turn, and scaled in between."""
    yield Call(CREATE, JOBS, text(job("toggled", nodes=8)))
    for turn in itertools.count():
        yield Call(PATCH, f"{JOBS}/toggled", text({"spec": {"suspend": turn % 2 == 0}}))
        yield Call(PATCH, f"{JOBS}/toggled/scale", text({"spec": {"replicas": turn % 100}}))


def _owner(name: str, uid: str) -> dict[str, Any]:
    return {
        "apiVersion": "muster.dev/v1alpha1",
        "kind": "DistributedTrainingJob",
        "name": name,
        "uid": uid,
        "controller": True,
        "blockOwnerDeletion": False,
    }


def _trainer(**fields: Any) -> dict[str, Any]:
    return {"spec": {"schedulerName": NOBODY, "containers": [{"name": "trainer", **fields}]}}


def pretenders(_: random.Random, prey: Prey) -> Iterator[Call]:
    """Pods that imitate the target's: by name, label and owner."""
    for turn in itertools.count():
        for replacement in range(3):
            name = f"{prey.name}-{turn % 2}-{replacement}"
            labels = {
                "muster.dev/job-uid": prey.uid,
                "muster.dev/job": prey.name,
                "muster.dev/node": str(turn % 2),
                "muster.dev/replacement": str(replacement),
            }
            metadata = {"labels": labels, "ownerReferences": [_owner(prey.name, prey.uid)]}
            yield Call(CREATE, PODS, text(pod(name, metadata)))
            yield Call(DELETE, f"{PODS}/{name}", text({"gracePeriodSeconds": 0}))


def many_owners(_: random.Random, prey: Prey) -> Iterator[Call]:
    """Thousands of owners, one of which is the target's job."""
    owners = [{**_owner(f"o{number}", str(uuid.UUID(int=number))), "controller": False} for number in range(4_000)]
    for number, count in enumerate((4_000, 500, 500, 500, 100, 100)):
        metadata = {"ownerReferences": [*owners[:count], _owner(prey.name, prey.uid)]}
        yield Call(CREATE, PODS, text(pod(f"owned-{number}", metadata)))
        yield Call(CREATE, JOBS, text(job(f"owned-{number}", metadata)))


def false_events(chance: random.Random, prey: Prey) -> Iterator[Call]:
    """Warnings about the target's pods and job, from another namespace, with large and unusual texts."""
    words = ("x" * 1_000, "\u001b[31m\u202e\r\n\u0007", nested(90), "(combined from similar events): " * 30, "")
    for turn in itertools.count():
        kind, about = (("Pod", f"{prey.name}-0-0"), ("DistributedTrainingJob", prey.name))[turn % 2]
        body = event(f"false-{turn}", kind, about, prey.uid, words[turn % len(words)][:1_000])
        body["reason"] = chance.choice(("FailedScheduling", "FailedMount", "OOMKilling", "Evicted", "Failed"))
        yield Call(CREATE, EVENTS, text(body))


def taken_names(_: random.Random, __: Prey) -> Iterator[Call]:
    """Objects with the names of a job's objects that exist already and don't belong to the job."""
    for number in range(20):
        name = f"taken-{number}"
        config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"{name}-muster"}, "data": {"a": "b"}}
        yield Call(CREATE, CONFIG_MAPS, text(config))
        service = {**config, "kind": "Service", "spec": {"ports": [{"port": 1}], "clusterIP": "None"}}
        service.pop("data")
        yield Call(CREATE, SERVICES, text(service))
        yield Call(CREATE, PODS, text(pod(f"{name}-0-0")))
        yield Call(CREATE, JOBS, text(job(name)))


def large_sources(_: random.Random, __: Prey) -> Iterator[Call]:
    """Code from ConfigMaps: of the maximum size, binary, with many keys, with hostile names, missing."""
    head: dict[str, Any] = {"apiVersion": "v1", "kind": "ConfigMap"}
    datas: dict[str, dict[str, Any]] = {
        "huge": {"data": {"train.py": "x" * 1_000_000}},
        "binary": {"binaryData": {"train.py": "A" * 1_000_000}},
        "many": {"data": {f"k{number}": "x" for number in range(20_000)}},
        "names": {"data": {"..data": "x", "-": "x", "x" * 250: "x"}},
    }
    for name, data in datas.items():
        yield Call(CREATE, CONFIG_MAPS, text({**head, "metadata": {"name": name}, **data}))
        sage = {
            "backend": "SageMaker",
            "sagemaker": {"instanceType": "ml.m5.large", "roleArn": "arn:aws:iam::1:role/x"},
        }
        for kind, spec in (("kube", {}), ("sage", sage)):
            yield Call(CREATE, JOBS, text(job(f"source-{kind}-{name}", None, source={"configMap": name}, **spec)))
    for turn in itertools.count():
        data = {"data": {"train.py": f"{turn}" + "x" * 1_000_000}}
        yield Call(PATCH, f"{CONFIG_MAPS}/huge", text(data))
        yield Call(PATCH, f"{JOBS}/source-kube-huge", text({"metadata": {"labels": {"turn": str(turn)}}}))


def own_status(_: random.Random, __: Prey) -> Iterator[Call]:
    """Write a status, in created objects and by the subresource, for which `edit` has no permission."""
    nonsense = {"phase": 7, "conditions": [{"type": "Complete"}], "ranks": {"world": -1}, "attempt": 10**18}
    for number in range(10):
        yield Call(CREATE, JOBS, text({**job(f"told-{number}"), "status": nonsense}))
        yield Call(PATCH, f"{JOBS}/told-{number}/status", text({"status": nonsense}))
        yield Call(REPLACE, f"{JOBS}/told-{number}/status", here({**job("told"), "status": HERE}, nested(DEEPEST)))


def odd_values(_: random.Random, __: Prey) -> Iterator[Call]:
    """Numbers and texts at their limits."""
    odd = ("1e308", "-1e400", "9223372036854775807", "1" * 400, '"\\ud800"', '"\\u0000"', "null", "[]", "true", "0.1")
    fields = ("nodes", "procsPerNode", "activeDeadlineSeconds", "startupTimeoutSeconds", "command", "hyperparameters")
    for number, (field, value) in enumerate(itertools.product((*fields, "resources", "template", "env"), odd)):
        yield Call(CREATE, JOBS, here(job(f"odd-{number}", None, **{field: HERE}), value))
    for number, value in enumerate(odd):
        yield Call(CREATE, JOBS, here(job(f"hyper-{number}", hyperparameters={"a": HERE}), value))
        container = {"spec": {"containers": [{"name": "trainer", "resources": {"limits": {"memory": HERE}}}]}}
        yield Call(CREATE, JOBS, here(job(f"limits-{number}", template=container), value))


def leases(_: random.Random, __: Prey) -> Iterator[Call]:
    """Leases with the operator's name in another namespace."""
    spec = {"holderIdentity": "tenant", "leaseDurationSeconds": 3600, "leaseTransitions": 10**6}
    body = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "muster"}, "spec": spec}
    yield Call(CREATE, LEASES, text(body))


def lone_tenant_pods(_: random.Random, __: Prey) -> Iterator[Call]:
    """500 pods with a job's label and no job, created and deleted."""
    for turn in itertools.count():
        name = f"lone-{turn % 500}"
        yield Call(CREATE, PODS, text(pod(name)))
        if turn >= 250:
            yield Call(DELETE, f"{PODS}/lone-{(turn - 250) % 500}", text({"gracePeriodSeconds": 0}))


def real_pods(_: random.Random, __: Prey) -> Iterator[Call]:
    """Schedulable jobs with an image that doesn't exist, started and deleted."""
    for turn in itertools.count():
        body = job(f"real-{turn % 2}", nodes=2)
        body["spec"].pop("template")
        yield Call(CREATE, JOBS, text(body))
        yield Call(PATCH, f"{JOBS}/real-{turn % 2}", text({"spec": {"suspend": turn % 4 > 1}}))


ATTACKS: Mapping[str, Attack] = {
    attack.__name__.replace("_", "-"): attack
    for attack in (
        deep_spec,
        deep_pod,
        deep_job_fields,
        deep_events,
        ranges,
        regexes,
        big_jobs,
        big_strings,
        big_pods,
        big_annotations,
        big_environment,
        many_jobs,
        wide_jobs,
        created_and_deleted,
        never_gone,
        labels_churn,
        suspend_toggled,
        pretenders,
        many_owners,
        false_events,
        taken_names,
        large_sources,
        own_status,
        odd_values,
        leases,
        lone_tenant_pods,
        real_pods,
    )
}
"""The attacks by name. Attacks by outsiders come first."""
