"""EKS Pod Identity: a webhook gives the containers of pods of a service account with a role their own token.

Written after the documentation of the pod's spec (EKS User Guide, "Configure Pods to use a Kubernetes service
account"): variables, and a projected volume in all containers, including init containers.
"""

from __future__ import annotations

import base64
import datetime as dt
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

from cluster.authority import Authority
from cluster.shared import Kubectl
from cluster.storage.served import for_pods
from fakes.http_site import http_site

ACCOUNT = "training"
ROLE = "arn:aws:iam::111122223333:role/training"
AUDIENCE = "sts.amazonaws.com"
_FOLDER = "/var/run/secrets/eks.amazonaws.com/serviceaccount"
_VOLUME = "aws-iam-token"


@contextmanager
def pod_identity(kubectl: Kubectl, namespace: str, sts: str, folder: Path) -> Iterator[None]:
    """Give the role to the namespace's pods of `ACCOUNT`; `sts` issues its credentials."""
    authority = Authority(dt.datetime.now(dt.UTC))
    name = f"pod-identity-{namespace}"
    with http_site(_webhook(sts), for_pods(authority, folder)) as url:
        kubectl.apply(_configuration(name, namespace, f"{url}/", authority))
        try:
            yield
        finally:
            kubectl("delete", "mutatingwebhookconfiguration", name)


def _webhook(sts: str) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            pod = review["request"]["object"]
            response: dict[str, object] = {"uid": review["request"]["uid"], "allowed": True}
            if pod["spec"].get("serviceAccountName") == ACCOUNT:
                patch = json.dumps(_patch(pod, sts)).encode()
                response |= {"patchType": "JSONPatch", "patch": base64.b64encode(patch).decode()}
            answer = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(json.dumps(answer).encode())

        def log_message(self, *_: object) -> None:
            pass

    return Handler


def _patch(pod: Any, sts: str) -> list[Mapping[str, object]]:
    token = {"serviceAccountToken": {"audience": AUDIENCE, "expirationSeconds": 86400, "path": "token"}}
    volume = {"name": _VOLUME, "projected": {"sources": [token]}}
    patch: list[Mapping[str, object]] = [{"op": "add", "path": "/spec/volumes/0", "value": volume}]
    for kind in ("initContainers", "containers"):
        for index, container in enumerate(pod["spec"].get(kind, [])):
            place = f"/spec/{kind}/{index}"
            mounts = [
                *container.get("volumeMounts", []),
                {"name": _VOLUME, "mountPath": _FOLDER, "readOnly": True},
            ]
            env = [*container.get("env", []), *_variables(sts)]
            patch += [
                {"op": "add", "path": f"{place}/volumeMounts", "value": mounts},
                {"op": "add", "path": f"{place}/env", "value": env},
            ]
    return patch


def _variables(sts: str) -> list[Mapping[str, str]]:
    values = {
        "AWS_STS_REGIONAL_ENDPOINTS": "regional",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_REGION": "us-east-1",
        "AWS_ROLE_ARN": ROLE,
        "AWS_WEB_IDENTITY_TOKEN_FILE": f"{_FOLDER}/token",
        # only this test sets the variable; on EKS the default endpoint is Amazon's
        "AWS_ENDPOINT_URL_STS": sts,
    }
    return [{"name": name, "value": value} for name, value in values.items()]


def _configuration(name: str, namespace: str, url: str, authority: Authority) -> Mapping[str, object]:
    trusted = base64.b64encode(authority.pair.certificate).decode()
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": name},
        "webhooks": [
            {
                "name": "pod-identity.muster.dev",
                "admissionReviewVersions": ["v1"],
                "sideEffects": "None",
                "failurePolicy": "Fail",
                "reinvocationPolicy": "Never",
                "timeoutSeconds": 10,
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
                "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}],
                "clientConfig": {"url": url, "caBundle": trusted},
            }
        ],
    }
