"""The release workflow: its steps run what the repository has, with the least permissions."""

import re
import subprocess
import sys
from typing import Any

import pytest
import yaml

from muster_dev import release
from muster_dev.paths import ROOT

FILE = ROOT / ".github" / "workflows" / "release.yml"
TEXT = FILE.read_text(encoding="utf-8")
# YAML 1.1 reads the key `on` as a boolean.
WORKFLOW: dict[Any, Any] = yaml.safe_load(TEXT)
JOBS: dict[str, dict[str, Any]] = WORKFLOW["jobs"]
STEPS = [(name, step) for name, job in JOBS.items() for step in job["steps"]]
RUNS = [step["run"] for _, step in STEPS if "run" in step]
DIGEST = f"sha256:{'a' * 64}"


def test_only_a_tag_of_a_version_starts_it() -> None:
    assert WORKFLOW[True] == {"push": {"tags": ["v[0-9]+.[0-9]+.[0-9]+"]}}


def test_a_job_has_the_permissions_that_it_needs() -> None:
    sign_and_push = {"contents": "read", "packages": "write", "id-token": "write"}
    assert {name: job["permissions"] for name, job in JOBS.items()} == {
        "versions": {"contents": "read"},
        "image": sign_and_push,
        "chart": sign_and_push,
        "wheel": {"contents": "read"},
        # PyPI trusts the workflow and this environment: there is no token.
        "publish": {"id-token": "write"},
    }
    assert [name for name, job in JOBS.items() if "environment" in job] == ["publish"]
    assert set(re.findall(r"secrets\.(\w+)", TEXT)) == {"GITHUB_TOKEN"}


def test_the_steps_run_what_the_repository_has() -> None:
    commands = {command for run in RUNS for command in re.findall(r"muster_dev ([\w-]+)", run)}
    assert commands == {"check-release", "set-chart-image"}
    unknown = subprocess.run(
        [sys.executable, "-m", "muster_dev"],
        env={"PYTHONPATH": str(ROOT / "tools")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert all(command in unknown.stderr for command in commands)
    for path in ("requirements/build.txt", "charts/muster", "Dockerfile"):
        assert (ROOT / path).exists()
        assert path == "Dockerfile" or any(path in run for run in RUNS)
    assert "hatchling" in (ROOT / "requirements" / "build.txt").read_text(encoding="utf-8")


def test_the_image_is_for_both_architectures_with_its_parts_listed_and_signed() -> None:
    [build] = [step for _, step in STEPS if step.get("uses", "").startswith("docker/build-push-action@")]
    options = build["with"]
    assert options["platforms"].split(",") == ["linux/amd64", "linux/arm64"]
    assert (options["sbom"], options["provenance"], options["push"]) == (True, "mode=max", True)
    signed = [name for name, step in STEPS if step.get("run", "").startswith("cosign sign --yes")]
    assert signed == ["image", "chart"]


def test_nothing_is_published_to_pypi_before_all_else_is_there() -> None:
    assert set(JOBS["publish"]["needs"]) == set(JOBS) - {"publish"}


def test_the_parts_have_one_version() -> None:
    (version,) = set(release.read_versions().values())
    assert list(release.find_problems(f"v{version}")) == []
    problems = list(release.find_problems("v99.0.0"))
    assert len(problems) == 4
    assert problems[0] == f"version in pyproject.toml: found {version}; expected 99.0.0, as in the tag"
    for tag in ("", version, "v1.2", "v1.2.3-rc1"):
        assert "such as v1.2.3" in next(release.find_problems(tag))


def test_the_published_chart_names_the_image_by_its_digest() -> None:
    text = (release.CHART / "values.yaml").read_text(encoding="utf-8")
    before, after = yaml.safe_load(text), yaml.safe_load(release.name_image(text, "ghcr.io/a/muster", DIGEST))
    image = {**before["image"], "repository": "ghcr.io/a/muster", "digest": DIGEST}
    assert after == {**before, "image": image}


@pytest.mark.parametrize(
    ("values", "digest", "said"), [("", DIGEST, "found 0 times"), ("", "sha256:abc", "expected sha256: and 64")]
)
def test_a_wrong_digest_or_other_values_are_refused(values: str, digest: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        release.name_image(values, "ghcr.io/a/muster", digest)
