"""muster as its users install it, by the chart, for a namespace."""

from cluster.installation import Installation


def test_what_replicas_agree_by_comes_back_when_it_is_deleted(installed_operator: Installation) -> None:
    kubectl, inside = installed_operator.kubectl, f"--namespace={installed_operator.system}"
    kinds, uids = ("lease/muster", "secret/muster-collector"), "--output=jsonpath={.items[*].metadata.uid}"
    old = kubectl("get", *kinds, inside, uids).split()
    assert len(old) == len(kinds)
    kubectl("delete", *kinds, inside)
    kubectl("rollout", "restart", "deployment/muster", inside)
    kubectl("rollout", "status", "deployment/muster", inside, "--timeout=120s")
    for kind in kinds:
        kubectl.wait("create", kind, inside)
    assert not {*old} & {*kubectl("get", *kinds, inside, uids).split()}
