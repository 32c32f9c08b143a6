"""The version of muster that a CustomResourceDefinition on a cluster is of."""

import pytest

from muster.api.crd import build_crds
from muster.cli.crds.version import VERSION_ANNOTATION, is_newer, read_crd_version
from muster.objects.kubernetes.kinds import Object
from muster_dev.paths import ROOT

UNKNOWN = ""


@pytest.mark.parametrize(
    ("version", "other", "newer"),
    [
        ("0.2.0", "0.1.0", True),
        ("0.10.0", "0.9.1", True),
        ("1.0.0", "0.99.0", True),
        ("0.1.0", "0.1.0", False),
        ("0.1.0", "0.2.0", False),
        ("0.2.0rc1", "0.2.0", False),
        (UNKNOWN, "0.1.0", False),
        ("newest", "0.1.0", False),
    ],
)
def test_versions_are_compared_by_their_numbers(version: str, other: str, *, newer: bool) -> None:
    assert is_newer(version, other) is newer


def test_a_definition_of_another_client_has_no_version() -> None:
    assert read_crd_version({"metadata": {"annotations": {VERSION_ANNOTATION: "0.1.0"}}}) == "0.1.0"
    crds: tuple[Object, ...] = ({}, {"metadata": {"name": "a"}}, {"metadata": {"annotations": {VERSION_ANNOTATION: 1}}})
    for crd in crds:
        assert read_crd_version(crd) == UNKNOWN


def test_each_file_of_the_chart_is_applied() -> None:
    names = {crd["metadata"]["name"] for crd in build_crds() if isinstance(crd["metadata"], dict)}
    files = {file.stem.partition("_") for file in (ROOT / "charts" / "muster" / "crds").iterdir()}
    assert {f"{plural}.{group}" for group, _, plural in files} == names
