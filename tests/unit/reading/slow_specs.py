"""Specs and statuses that took seconds or minutes once, or might: each within the size limit."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

from muster.api.document import JSON
from muster.api.validation.validate import MAX_SPEC_BYTES

Spec = dict[str, JSON]

MAX_STATUS_BYTES = 1024 * 1024


def spec(**fields: JSON) -> Spec:
    """Return a small job with these fields."""
    return {"nodes": 1, "image": "x", "launcher": {"direct": {}}, "command": ["x"], **fields}


def training(**fields: JSON) -> Spec:
    """Return a small job of backend SageMaker, with these fields in its block."""
    block: Spec = {
        "role": "arn:aws:iam::111122223333:role/T",
        "instanceType": "ml.p4d.24xlarge",
        "region": "us-west-2",
        **fields,
    }
    return spec(backend="SageMaker", sagemaker=block, output={"s3": "s3://bucket/out"})


def many(item: JSON, room: int = MAX_SPEC_BYTES - 4096) -> list[JSON]:
    """As many of it as the limit allows."""
    return [item] * (room // (len(json.dumps(item)) + 2))


def keyed(count: int, value: JSON) -> Spec:
    """Return this many fields with that value."""
    return {f"k{index}": value for index in range(count)}


def nested(levels: int, value: JSON = 0) -> JSON:
    """Return a value inside this many fields."""
    for _ in range(levels):
        value = {"a": value}
    return value


def trainer(**fields: JSON) -> Spec:
    """Return a template with these fields of the ranks' container."""
    return {"spec": {"containers": [{"name": "trainer", **fields}]}}


def metrics(pattern: Callable[[int], str]) -> Spec:
    """Return a job with the maximum number of metrics, each with another expression."""
    return spec(metrics=[{"name": f"m{index}", "regex": pattern(index)[:500]} for index in range(40)])


def tolerations(count: int, prefix: str = "t") -> list[JSON]:
    """Return this many different tolerations."""
    return [{"key": f"{prefix}{index}"} for index in range(count)]


_CHANNELS: list[JSON] = [{"name": f"c{index}", "volume": {"hostPath": {"path": f"/{index}"}}} for index in range(16)]
_STORED: Spec = {"checkpoint": {"s3": "s3://bucket/a"}, "output": {"s3": "s3://bucket/a"}}

SLOW_SPECS: Mapping[str, JSON] = {
    "ranges that say the same": spec(
        nodes=10000, nodeOverrides=[{"nodes": ",".join("0" * 128), "template": {}} for _ in range(64)]
    ),
    "ranges that alternate": spec(
        nodes=10000,
        nodeOverrides=[
            {
                "nodes": ",".join(str(10 * node + index % 9) for node in range(60))[:250].rpartition(",")[0],
                "template": {},
            }
            for index in range(64)
        ],
    ),
    "overrides within overrides": spec(
        nodes=10000,
        nodeOverrides=[
            {"nodes": f"{index}-9999", "template": {"spec": {"tolerations": tolerations(60, f"z{index}-")}}}
            for index in range(64)
        ],
    ),
    "overrides of all nodes": spec(
        nodes=10000,
        nodeOverrides=[
            {"nodes": "0-9999", "template": trainer(env=[{"name": f"A{index}"} for index in range(70)])}
            for _ in range(64)
        ],
    ),
    "lists that every override lengthens": spec(
        nodes=10000,
        template={"spec": {"tolerations": tolerations(2000)}},
        nodeOverrides=[
            {"nodes": f"{min(index, 13)}-9999", "template": {"spec": {"tolerations": tolerations(30, f"z{index}-")}}}
            for index in range(20)
        ],
    ),
    "classes under (?i)": metrics(lambda index: "(?i)(" + "[\x01-\uffff]" * (90 - index) + "A)"),
    "classes without": metrics(lambda index: "(" + "[ -\uffff]" * (90 - index) + ")"),
    "one class of many ranges": metrics(lambda index: "(?i)([" + " -\uffff" * (120 - index) + "])"),
    "escaped ranges": metrics(lambda index: "(?i)(" + r"[\u0001-\uffff]" * (30 - index % 20) + ")"),
    "as many ranges as are allowed": metrics(lambda index: "(?i)(" + "[!-~]" * 24 + "k" * (300 - index) + ")"),
    "wide classes": metrics(lambda index: "(?i)(" + "[é]" * 4 + "k" * (400 - index) + ")"),
    "alternatives": metrics(lambda index: "(" + "|" * (480 - index) + ")"),
    "alternatives of one beginning": metrics(lambda index: "(" + "|".join(["ab" * (30 - index % 20)] * 7) + ")"),
    "groups within groups": metrics(lambda index: "(" * (240 - index) + "a" + ")" * (240 - index)),
    "groups side by side": metrics(lambda index: "(a)" * (160 - index)),
    "named groups": metrics(lambda index: "".join(f"(?P<a{one}>)" for one in range(60 - index))),
    "repetitions": metrics(lambda index: "(" + "(?:" * 60 + "a" + "){9}" * (60 - index) + ")"),
    "references": metrics(lambda index: "(a)" + "(?(1)a|b)" * (50 - index)),
    "characters by name": metrics(lambda index: "(" + r"\N{LATIN SMALL LETTER A}" * (18 - index % 17) + ")"),
    "looking behind": metrics(lambda index: "(a)" + "(?<=" * (90 - index) + "a" + ")" * (90 - index)),
    "unknown fields": spec(**keyed(18000, 0)),
    "some unknown fields": spec(**keyed(9000, 0)),
    "fields that are nearly known": spec(**{f"sagemakeR{index}": 0 for index in range(9000)}),
    "a long unknown field": spec(**{"k" * 200_000: 0}),
    "long unknown fields": spec(**{"k" * 1000 + str(index): 0 for index in range(200)}),
    "fields of nothing": spec(**keyed(15000, None)),
    "words that are none": spec(command=many(0)),
    "empty metrics": spec(metrics=many({})),
    "some empty metrics": spec(metrics=[{}] * 9000),
    "inputs that are none": spec(inputs=[0] * 9000),
    "empty variables": spec(env=many({})),
    "the same variable": spec(env=[{"name": "A"}] * 4000),
    "hyperparameters of no type": spec(hyperparameters=keyed(4000, [])),
    "empty instance groups": training(instanceGroups=[{}] * 9000),
    "empty rules": training(debugger={"rules": [{}] * 9000}),
    "tags": training(tags=keyed(9000, "")),
    "empty containers": spec(template={"spec": {"containers": [{}] * 9000}}),
    "containers that are none": spec(template={"spec": {"containers": [0] * 9000}}),
    "volumes that are none": spec(template={"spec": {"volumes": many([])}}),
    "containers": spec(
        nodes=10000, template={"spec": {"containers": [{"name": f"c{index}"} for index in range(4800)]}}
    ),
    "the same container": spec(template={"spec": {"containers": [{"name": "trainer"}] * 4800}}),
    "variables of a template": spec(
        template=trainer(env=[{"name": f"c{index}", "value": ""} for index in range(3200)])
    ),
    "rendezvous variables": spec(template=trainer(env=[{"name": "RANK"}] * 4500)),
    "labels": spec(template={"metadata": {"labels": keyed(9000, "")}}),
    "labels of muster": spec(template={"metadata": {"labels": {f"muster.dev/{index}": 0 for index in range(9000)}}}),
    "tolerations": spec(
        template={"spec": {"tolerations": tolerations(4900)}}, nodePool={"tolerations": tolerations(16, "x")}
    ),
    "mounts": spec(
        template=trainer(volumeMounts=[{"name": "v", "mountPath": f"/c{index}"} for index in range(3100)]),
        inputs=_CHANNELS,
        **_STORED,
    ),
    "long mounts": spec(
        template=trainer(volumeMounts=[{"name": "v", "mountPath": "/a" * 100 + f"/c{index}"} for index in range(1000)]),
        inputs=_CHANNELS,
        **_STORED,
    ),
    "a very long mount": spec(template=trainer(volumeMounts=[{"name": "v", "mountPath": "/" + "./" * 60000}] * 2)),
    "volumes": spec(
        template={"spec": {"volumes": [{"name": f"c{index}", "emptyDir": {}} for index in range(3200)]}},
        inputs=_CHANNELS,
    ),
    "terms of an affinity": spec(
        template={
            "spec": {
                "affinity": {
                    "nodeAffinity": {
                        "requiredDuringSchedulingIgnoredDuringExecution": {
                            "nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Exists"}]}] * 1600
                        }
                    }
                }
            }
        }
    ),
    "init containers": spec(
        agent={"inject": "InitContainer"},
        **_STORED,
        template={"spec": {"initContainers": [{"name": f"i{index}", "image": "x"} for index in range(2500)]}},
    ),
    "devices of many digits": spec(template=trainer(resources={"limits": {"nvidia.com/gpu": "9" * 5000}})),
    "files": spec(source={"inline": {"files": keyed(9000, "")}}),
    "files in folders": spec(source={"inline": {"files": {"a/" * 1000 + str(index): "" for index in range(60)}}}),
    "a file in very many folders": spec(
        source={"inline": {"files": {"a/" * 60000 + str(index): "" for index in range(2)}}}
    ),
    "a URL of dashes": spec(source={"git": {"url": "https://" + "a-" * 500 + "_", "commit": "0" * 40}}),
    "a URL of folders": spec(source={"git": {"url": "https://a/" + "a/" * 500 + "!", "commit": "0" * 40}}),
    "interfaces": spec(network={"interface": "a," * 127}),
    "options": spec(launcher={"mpi": {"args": ["--mca", "a", "b"] * 3000}}),
    "levels": spec(template={"spec": {"affinity": nested(900)}}),
    "some levels": spec(template={"spec": {"affinity": nested(60)}}),
    "characters that don't show": spec(backend="\u0001" * 40000),
    "a list for a spec": [0] * 80000,
}

SLOW_STATUSES: Mapping[str, JSON] = {
    "conditions that are none": {"conditions": many(0, MAX_STATUS_BYTES)},
    "empty conditions": {"conditions": many({}, MAX_STATUS_BYTES)},
    "some empty conditions": {"conditions": [{}] * 9000},
    "ranges that are none": {"ranks": {"world": 1, "byState": many(0, MAX_STATUS_BYTES)}},
    "empty details": {"ranks": {"details": many({}, MAX_STATUS_BYTES)}},
    "some wrong details": {"ranks": {"world": 1, "running": 0, "ready": "", "details": [{"rank": "x"}] * 4500}},
    "metrics that are none": {"progress": {"metrics": keyed(9000, "x")}},
    "unknown fields": keyed(9000, 0),
    "a long message": {"message": "x" * 1_000_000},
}
