"""The kinds of objects that muster reads and writes, and their paths in the API."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import quote

from muster.api.document import JSON
from muster.api.names import (
    CLUSTER_TEMPLATE_KIND,
    CLUSTER_TEMPLATE_PLURAL,
    GROUP,
    PLURAL,
    TEMPLATE_KIND,
    TEMPLATE_PLURAL,
    VERSION,
)

Object = Mapping[str, JSON]
"""An object of the API server."""


@dataclass(frozen=True)
class ParseOptions:
    """Which parts of an object muster parses.

    `metadata` are the fields of the metadata to keep (None: all but managedFields), `parts` the other top-level fields
    to keep (None: all). Fields in `text_fields` stay JSON text. `max_bytes` limits the text of fields, by path.
    `annotations` are the names of the annotations to keep (None: all), each with the number of characters to keep. If
    the object's text lacks `required_text`, keep only its identity.

    Objects of at most `whole_bytes` bytes are parsed as a whole, six times faster than part by part. Then all parts may
    be nested deeply. So set `whole_bytes` only for kinds whose objects muster never walks recursively.
    """

    metadata: frozenset[str] | None = None
    parts: frozenset[str] | None = None
    text_fields: frozenset[str] = frozenset()
    max_bytes: Mapping[str, int] = field(default_factory=dict)
    required_text: bytes = b""
    annotations: Mapping[str, int] | None = None
    whole_bytes: int = 0

    @property
    def is_metadata_only(self) -> bool:
        """Whether only the metadata is needed."""
        return self.parts is not None and not self.parts


@dataclass(frozen=True)
class Kind:
    """A kind of objects. `group` is "" for the core group."""

    group: str
    version: str
    plural: str
    name: str
    parse_options: ParseOptions = field(default_factory=ParseOptions, compare=False)

    @property
    def api_version(self) -> str:
        """The `apiVersion` of the kind's objects."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def build_path(self, namespace: str | None, name: str | None = None, subresource: str | None = None) -> str:
        """Return the URL path of one object, or of all objects (`namespace` None: in all namespaces)."""
        parts = ["/apis", self.group, self.version] if self.group else ["/api", self.version]
        if namespace is not None:
            parts += ["namespaces", quote(namespace, safe="")]
        parts.append(self.plural)
        parts += [quote(part, safe="") for part in (name, subresource) if part is not None]
        return "/".join(parts)


PODS = Kind("", "v1", "pods", "Pod")
NODES = Kind(
    "",
    "v1",
    "nodes",
    "Node",
    ParseOptions(metadata=frozenset({"name", "uid", "resourceVersion"}), parts=frozenset({"spec"})),
)
SERVICES = Kind("", "v1", "services", "Service")
CONFIG_MAPS = Kind("", "v1", "configmaps", "ConfigMap")
CONFIG_MAP_IDENTITIES = Kind(
    "",
    "v1",
    "configmaps",
    "ConfigMap",
    ParseOptions(metadata=frozenset({"name", "uid", "ownerReferences"}), parts=frozenset()),
)
"""ConfigMaps without their data, which may be large."""
SECRETS = Kind("", "v1", "secrets", "Secret")
EVENTS = Kind("", "v1", "events", "Event")
ENDPOINT_SLICES = Kind("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice")
LEASES = Kind("coordination.k8s.io", "v1", "leases", "Lease")
JOBS = Kind(GROUP, VERSION, PLURAL, "DistributedTrainingJob")
JOB_IDENTITIES = Kind(GROUP, VERSION, PLURAL, "DistributedTrainingJob", ParseOptions(parts=frozenset()))
"""The jobs, of which the API server sends only the metadata."""

TRAINING_TEMPLATES = Kind(GROUP, VERSION, TEMPLATE_PLURAL, TEMPLATE_KIND)
CLUSTER_TRAINING_TEMPLATES = Kind(GROUP, VERSION, CLUSTER_TEMPLATE_PLURAL, CLUSTER_TEMPLATE_KIND)

CRDS = Kind("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition")

TOKEN_REVIEWS = Kind("authentication.k8s.io", "v1", "tokenreviews", "TokenReview")
SUBJECT_ACCESS_REVIEWS = Kind("authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview")

VOLCANO_POD_GROUPS = Kind("scheduling.volcano.sh", "v1beta1", "podgroups", "PodGroup")
COSCHEDULING_POD_GROUPS = Kind("scheduling.x-k8s.io", "v1alpha1", "podgroups", "PodGroup")
VALIDATING_WEBHOOKS = Kind(
    "admissionregistration.k8s.io", "v1", "validatingwebhookconfigurations", "ValidatingWebhookConfiguration"
)
MUTATING_WEBHOOKS = Kind(
    "admissionregistration.k8s.io", "v1", "mutatingwebhookconfigurations", "MutatingWebhookConfiguration"
)
"""Like `NODES`, these kinds are cluster-scoped."""
