"""A user with Kubernetes' role `edit` in one namespace, who sends the API server arbitrary bytes."""

import base64
import http.client
import json
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from cluster.shared import Kubectl, Manifest

ACCOUNT = "tenant"
TIMEOUT_SECONDS = 30.0

NAMESPACE = "{namespace}"
"""A placeholder for the tenant's own namespace."""

JOBS = "/apis/muster.dev/v1alpha1/namespaces/{namespace}/distributedtrainingjobs"
PODS = "/api/v1/namespaces/{namespace}/pods"
EVENTS = "/api/v1/namespaces/{namespace}/events"
CONFIG_MAPS = "/api/v1/namespaces/{namespace}/configmaps"
SERVICES = "/api/v1/namespaces/{namespace}/services"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"

CREATE, REPLACE, PATCH, DELETE = "POST", "PUT", "PATCH", "DELETE"
MERGE = "application/merge-patch+json"


@dataclass(frozen=True)
class Call:
    """A request; NAMESPACE in it is the tenant's. `body` need not be JSON that Python could write."""

    verb: str
    path: str
    body: str = ""

    @property
    def content_type(self) -> str:
        """A patch is a merge patch."""
        return MERGE if self.verb == PATCH else "application/json"


@dataclass(frozen=True)
class Access:
    """The API server's address and the user's credentials. `authority` None: the certificate is not verified."""

    server: str
    namespace: str
    token: str
    authority: str | None

    def text(self) -> str:
        """As text for another process."""
        return json.dumps(vars(self))


def access(kubectl: Kubectl, namespace: str) -> Access:
    """Return a tenant's in an existing namespace: an account with only the role `edit` there."""
    inside = f"--namespace={namespace}"
    kubectl.apply(*_rights(namespace))
    token = kubectl("create", "token", ACCOUNT, inside, "--duration=2h").strip()
    document = json.loads(kubectl("config", "view", "--raw", "--minify", "--flatten", "--output=json"))
    cluster: Mapping[str, str] = document["clusters"][0]["cluster"]
    return Access(cluster["server"], namespace, token, cluster.get("certificate-authority-data"))


def _rights(namespace: str) -> tuple[Manifest, ...]:
    metadata = {"name": ACCOUNT, "namespace": namespace}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "edit"}
    subject = {"kind": "ServiceAccount", **metadata}
    return (
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata},
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "RoleBinding",
            "metadata": metadata,
            "roleRef": role,
            "subjects": [subject],
        },
    )


@dataclass
class Tenant:
    """A connection of the tenant; one for each thread."""

    access: Access
    _open: http.client.HTTPSConnection | None = field(default=None, init=False)

    def send(self, call: Call) -> int:
        """Send a call; return the answer's status, 0 if none came."""
        headers = {"Authorization": f"Bearer {self.access.token}", "Content-Type": call.content_type}
        try:
            connection = self._open = self._open or self._connect()
            path, body = (each.replace(NAMESPACE, self.access.namespace) for each in (call.path, call.body))
            connection.request(call.verb, path, body.encode(errors="surrogatepass"), headers)
            answer = connection.getresponse()
            answer.read()
        except (OSError, http.client.HTTPException):
            if self._open is not None:
                self._open.close()
            self._open = None
            return 0
        return answer.status

    def _connect(self) -> http.client.HTTPSConnection:
        where = urlsplit(self.access.server)
        return http.client.HTTPSConnection(
            where.hostname or "", where.port, timeout=TIMEOUT_SECONDS, context=_trust(self.access.authority)
        )


def _trust(authority: str | None) -> ssl.SSLContext:
    if authority is None:
        return ssl._create_unverified_context()  # noqa: S323 - a cluster without its own authority
    return ssl.create_default_context(cadata=base64.b64decode(authority).decode())
