"""Pods of the workers' image import this environment's torch."""

from cluster.images import PULL_POLICY, PYTHON_IMAGE
from cluster.shared import Kubectl
from cluster.torch_volume import TorchVolume


def test_a_pod_imports_torch(kubectl: Kubectl, namespace: str, torch_for_pods: TorchVolume) -> None:
    container = {
        "name": "importing",
        "image": PYTHON_IMAGE,
        "imagePullPolicy": PULL_POLICY,
        "command": ["python3", "-c", "import torch; print(torch.ones(2).sum().item())"],
        "volumeMounts": list(torch_for_pods.mounts),
        "env": list(torch_for_pods.env),
    }
    spec = {"restartPolicy": "Never", "containers": [container], "volumes": list(torch_for_pods.volumes)}
    metadata = {"name": "importing", "namespace": namespace}
    kubectl.apply({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
    kubectl.wait("jsonpath={.status.phase}=Succeeded", "pod/importing", f"--namespace={namespace}")
    assert kubectl("logs", "importing", f"--namespace={namespace}") == "2.0\n"
