"""docs/install.md and docs/upgrade.md are correct: their commands work, and the table has every value."""

import re
import shlex

import yaml

from cluster.helm import CHART
from cluster.places import ROOT
from cluster.shared import Kubectl

TEXT, UPGRADE = ((ROOT / "docs" / page).read_text(encoding="utf-8") for page in ("install.md", "upgrade.md"))
BLOCKS = re.findall(r"```sh\n(.*?)```", TEXT + UPGRADE, re.DOTALL)
COMMANDS = [line for block in BLOCKS for line in re.sub(r"\\\n\s*", "", block).splitlines()]
NAMESPACE = "--namespace"


def test_every_command_is_looked_at() -> None:
    assert {" ".join(command.split()[:2]) for command in COMMANDS} == {
        *("make image", "docker push", "docker pull", "docker inspect", "muster apply-crds"),
        *("helm upgrade", "helm test", "helm rollback", "helm uninstall"),
        *("kubectl rollout", "kubectl apply", "kubectl delete"),
    }


def test_the_crd_is_taken_by_the_api_server(kubectl: Kubectl) -> None:
    [command] = [each for each in COMMANDS if each.startswith("kubectl apply")]
    _, *words = shlex.split(command)
    words[-1] = str(ROOT / words[-1])
    assert "serverside-applied" in kubectl(*words, "--dry-run=server")


def test_what_is_uninstalled_is_what_was_installed() -> None:
    [command] = [each for each in COMMANDS if each.startswith("helm uninstall")]
    first = next(each for each in COMMANDS if each.startswith("helm upgrade --install"))
    assert shlex.split(command)[2] == shlex.split(first)[3]
    assert NAMESPACE + " muster-system" in command
    [delete] = [each for each in COMMANDS if each.startswith("kubectl delete crd")]
    crds = (yaml.safe_load(file.read_text(encoding="utf-8")) for file in (CHART / "crds").iterdir())
    assert sorted(delete.split()[3:]) == sorted(crd["metadata"]["name"] for crd in crds)


def test_the_table_has_every_value() -> None:
    values = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
    nested = {
        "image",
        "agent",
        "board",
        "collector",
        "crds",
        "metrics",
        "networkPolicy",
        "queues",
        "serviceAccount",
        "storage",
        "webhook",
    }
    expected = {
        name
        for key, value in values.items()
        for name in ([f"{key}.{each}" for each in value] if key in nested else [key])
    }
    result = set()
    for cell in re.findall(r"^\| (`.*?`) \|", TEXT, re.MULTILINE):
        names = re.findall(r"`([^`]+)`", cell)
        result |= {names[0].split(".")[0] + name if name.startswith(".") else name for name in names}
    assert result == expected
