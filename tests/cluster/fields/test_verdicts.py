"""Specs that the API server accepts and muster refuses: the operator gives the message of `muster validate`, and
creates nothing.
"""

import json

from cluster.operator.cluster_jobs import Jobs, manifest
from unit.api.api_resources import bad_resources, problems

ROWS = {f"row-{index}": row for index, row in enumerate(bad_resources()) if row.by == "muster"}
RUN = tuple(ROWS)[:2]
"""The jobs that really run once they are corrected; the others are suspended, to save the machine's time."""


def listed(jobs: Jobs) -> dict[str, dict[str, str]]:
    """Return the condition Accepted of each row."""
    items = json.loads(jobs.run("get", "dtj", "--selector=table=bad", "--output=json"))["items"]
    return {
        item["metadata"]["name"]: next(one for one in item["status"]["conditions"] if one["type"] == "Accepted")
        for item in items
    }


def test_the_operators_verdict_is_validates_and_what_is_repaired_runs(jobs: Jobs) -> None:
    assert len(ROWS) > 50
    metadata = {name: {"name": name, "labels": {"table": "bad"}} for name in ROWS}
    bad = [{**row.value, "metadata": metadata[name]} for name, row in ROWS.items()]
    # not apply, which would drop nulls
    jobs.run("create", "--save-config", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": bad}))
    jobs.run("wait", "dtj", "--selector=table=bad", "--for=condition=Accepted=False", "--timeout=60s")
    for name, accepted in listed(jobs).items():
        value = "; ".join(f"{path}: {message}" for path, message in problems(ROWS[name].value))
        assert accepted["message"] == f"muster refuses the resource: {value}", name
    made = jobs.run("get", "pods,services,configmaps", "--selector=muster.dev/job", "--output=name").split()
    assert not [child for child in made if "/row-" in child]

    good = [
        {**manifest(name, nodes=1, procsPerNode=1, suspend=name not in RUN), "metadata": metadata[name]}
        for name in ROWS
    ]
    jobs.run("apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": good}))
    jobs.run("wait", "dtj", "--selector=table=bad", "--for=condition=Accepted=True", "--timeout=60s")
    for name in RUN:
        jobs.wait(name, "condition=Complete")
    jobs.run("delete", "dtj", "--selector=table=bad", "--wait=false")
