"""`muster doctor` finds nothing wrong with an installation of the chart."""

from cluster.installation import Installation
from cluster.muster_command import Muster


def test_an_installation_is_well(installed_operator: Installation) -> None:
    muster = Muster(installed_operator.kubectl.kubeconfig, installed_operator.namespace)
    done = muster("doctor", "--operator-namespace", installed_operator.system)
    assert done.stderr == ""
    found = [line.split()[:2] for line in done.stdout.splitlines() if not line.startswith(" ")]
    assert found == [
        ["ok", "CRD:"],
        ["ok", "operator:"],
        ["ok", "namespace:"],
        ["ok", "Lease:"],
        ["ok", "webhook:"],
        ["ok", "collector:"],
        ["unknown", "NetworkPolicy:"],
        ["ok", "GPUs:"],
        ["ok", "EFA:"],
        ["ok", "permissions:"],
    ], done.stdout
    assert done.returncode == 0
