"""pyproject.toml's metadata is true for the wheel."""

import re
import subprocess
import sys
import tomllib
from email import message_from_string
from email.message import Message
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
import yaml

from cluster import dockerfile
from muster.distribution import DISTRIBUTION, get_version
from muster_dev.paths import PYPROJECT, REQUIREMENTS, ROOT

DOCUMENT: dict[str, Any] = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))
PROJECT: dict[str, Any] = DOCUMENT["project"]
LICENSE = (ROOT / "LICENSE").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> ZipFile:
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-P", "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, check=True, capture_output=True, cwd=ROOT)
    (file,) = folder.iterdir()
    return ZipFile(file)


def read(wheel: ZipFile, name: str) -> bytes:
    """Return a file of the wheel's own folder, whose name has the distribution's name and version."""
    return wheel.read(f"{DISTRIBUTION.replace('-', '_')}-{PROJECT['version']}.dist-info/{name}")


@pytest.fixture
def metadata(wheel: ZipFile) -> Message:
    return message_from_string(read(wheel, "METADATA").decode())


def test_the_wheel_has_the_name_that_the_code_asks_for(metadata: Message) -> None:
    assert (metadata["Name"], metadata["Version"]) == (DISTRIBUTION, get_version())


def test_the_wheel_has_its_licence(wheel: ZipFile, metadata: Message) -> None:
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata.get_all("License-File") == ["LICENSE"]
    assert read(wheel, "licenses/LICENSE").decode() == LICENSE
    assert re.search(r"Apache License\s+Version 2\.0, January 2004", LICENSE)


def test_the_wheel_has_the_readme(metadata: Message) -> None:
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert metadata.get_payload() == (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_command_and_the_import_packages_are_called_muster(wheel: ZipFile) -> None:
    assert read(wheel, "entry_points.txt").decode().split("\n") == [
        "[console_scripts]",
        "kubectl-muster = muster.cli.kubectl:main",
        "kubectl_complete-muster = muster.cli.completion:complete_for_kubectl",
        "muster = muster.cli.main:main",
        "",
    ]
    folders = {Path(name).parts[0] for name in wheel.namelist()}
    assert {folder for folder in folders if not folder.endswith(".dist-info")} == {"muster", "muster_worker"}


def test_what_only_a_checkout_needs_is_not_published(metadata: Message) -> None:
    assert set(metadata.get_all("Provides-Extra", [])) == {"aws", "cluster"}


def test_no_group_asks_an_index_for_this_project() -> None:
    entries = [entry for group in DOCUMENT["dependency-groups"].values() for entry in group if isinstance(entry, str)]
    assert [entry for entry in entries if re.match(rf"(muster|{DISTRIBUTION})\b", entry)] == []


def test_the_lock_names_no_index() -> None:
    files = sorted(REQUIREMENTS.glob("*.txt"))
    assert files
    assert [file.name for file in files if re.search(r"://|--\w*index|find-links", file.read_text("utf-8"))] == []


def test_the_image_is_built_from_all_that_the_wheel_is_made_of() -> None:
    stages = dockerfile.parse((ROOT / "Dockerfile").read_text(encoding="utf-8"))
    (build,) = [stage for stage in stages if stage.name == "build"]
    copied = {source for step in build.steps if isinstance(step, dockerfile.Copy) for source in step.sources}
    packages = DOCUMENT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    assert copied == {"pyproject.toml", PROJECT["readme"], *PROJECT["license-files"], *packages}


def test_the_image_and_the_chart_name_the_same_licence_and_home() -> None:
    final = dockerfile.parse((ROOT / "Dockerfile").read_text(encoding="utf-8"))[-1]
    chart = yaml.safe_load((ROOT / "charts" / "muster" / "Chart.yaml").read_text(encoding="utf-8"))
    assert dict(final.labels)["org.opencontainers.image.licenses"] == PROJECT["license"]
    assert chart["annotations"]["artifacthub.io/license"] == PROJECT["license"]
    assert chart["home"] == PROJECT["urls"]["Homepage"]
    assert [maintainer["name"] for maintainer in chart["maintainers"]] == [each["name"] for each in PROJECT["authors"]]


def test_the_changelog_tells_of_this_version_last() -> None:
    titles = re.findall(r"^## \[(.+?)\]", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert titles[:2] == ["Unreleased", PROJECT["version"]]
