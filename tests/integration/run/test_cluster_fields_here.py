"""A file for a cluster also runs here, and muster lists the fields without effect."""

import pathlib

from integration.run.muster_run import run, write_job

SHOWS = 'echo "token=$TOKEN" > "$SM_OUTPUT_DIR/$RANK"'


def test_a_clusters_file_runs_here(tmp_path: pathlib.Path) -> None:
    job = write_job(
        tmp_path,
        ["sh", "-c", SHOWS],
        image="train:1",
        suspend=True,
        env=[{"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "hub", "key": "token"}}}],
        output={"volume": {"hostPath": {"path": str(tmp_path / "cluster")}}},
    )
    done = run(tmp_path, job, env={"TOKEN": "s3cr3t"})
    assert done.process.returncode == 0, done.stderr
    assert "ignored here, because they are for a cluster: image, output.volume\n" in done.stderr
    assert "suspend: true is ignored here: the job runs\n" in done.stderr
    assert (done.folder / "output" / "3").read_text() == "token=s3cr3t\n"
    assert not (tmp_path / "cluster").exists()
    # a secret must not be stored in the run's folder
    assert "s3cr3t" not in (done.folder / "job.yaml").read_text() + done.stderr


def test_an_unset_variable_of_a_cluster_is_an_error(tmp_path: pathlib.Path) -> None:
    env = [{"name": "NOBODYS", "valueFrom": {"secretKeyRef": {"name": "hub", "key": "token"}}}]
    done = run(tmp_path, write_job(tmp_path, ["true"], env=env))
    assert done.process.returncode == 2
    assert "spec.env[0].valueFrom: NOBODYS is not in your environment" in done.stderr
