"""Secrets are not in logs, events or a status."""

import json
import re
import secrets

from cluster.operator.site import Site
from cluster.security.intruder import OWN, Ask, ask, collector

# A token has three parts in base64, the first of which is JSON.
CONFIDENTIAL = re.compile(r"eyJ[\w-]{10,}\.|Bearer \S|PRIVATE KEY|BEGIN CERTIFICATE")

FAILING = """
import os, sys
assert os.environ["KEY"]
sys.exit("said by the rank itself")
"""


def test_a_secret_stays_where_it_is(guarded: Site) -> None:
    jobs, value = guarded.jobs, secrets.token_hex(16)
    jobs.run("create", "secret", "generic", "keys", f"--from-literal=key={value}")
    env = [{"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "keys", "key": "key"}}}]
    jobs.apply("discreet", FAILING, nodes=1, procsPerNode=1, env=env, cleanPodPolicy="None")
    jobs.wait("discreet", "condition=Failed")
    # the rank had it, and the log contains a rank's output
    assert "said by the rank itself" in jobs.status("discreet")["message"]
    everything = jobs.run("get", "dtj,pods,services,configmaps,events", "--output=json")
    for text in (everything, jobs.log("discreet-0-0"), guarded.said):
        assert value not in text


def test_tokens_and_keys_are_in_no_log_event_or_status(guarded: Site) -> None:
    """All events and logs of this namespace so far, including those of a few refused requests now."""
    jobs = guarded.jobs
    jobs.apply("quiet", nodes=1, procsPerNode=1, cleanPodPolicy="None")
    jobs.wait("quiet", "condition=Complete")
    jobs.apply("probing", "import time; time.sleep(600)", nodes=1, procsPerNode=1)
    jobs.wait("probing", "jsonpath={.status.phase}=Running")
    own = jobs.run("exec", "probing-0-0", "--container=trainer", "--", "cat", "/muster/token").strip()
    assert CONFIDENTIAL.search(own)
    asked = [
        Ask(OWN, own),
        Ask(own + "x", own),
        Ask(own, own, "GET", f"/{own}"),
        Ask(OWN, None, "GET", f"/v1/command?{own}"),
    ]
    answers = ask(guarded, "probing-0-0", collector(guarded, "probing"), asked)
    assert [status for status, _ in answers] == [400, 401, 404, 400]
    value = jobs.run("get", "dtj,events", "--output=json")
    logs = [jobs.log(pod) for pod in ("quiet-0-0", "probing-0-0")]
    for text in (value, json.dumps(answers), guarded.said, *logs):
        assert not CONFIDENTIAL.search(text)
    jobs.run("delete", "dtj", "quiet", "probing", "--wait=false")
