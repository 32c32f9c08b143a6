"""`muster run` of a job with a network check: the final status has this machine's own numbers."""

import pathlib

import yaml

from integration.run.muster_run import run, write_job


def test_the_status_has_every_node_s_figures(tmp_path: pathlib.Path) -> None:
    done = run(tmp_path, write_job(tmp_path, ["true"], network={"check": True}))
    assert done.process.returncode == 0, done.stderr
    network = yaml.safe_load((done.folder / "job.yaml").read_text())["status"]["network"]
    assert [node["bandwidthMbps"] > 0 and node["roundTripMicroseconds"] > 0 for node in network["nodes"]] == [True] * 2
    assert (network["check"]["measured"], network["check"]["slowCount"]) == (2, 0)
