"""What the resource is called, and what its own name may be."""

GROUP = "muster.dev"
VERSION = "v1alpha1"
API_VERSION = f"{GROUP}/{VERSION}"
KIND = "DistributedTrainingJob"
PLURAL = "distributedtrainingjobs"
SHORT_NAME = "dtj"

MAX_NAME_CHARS = 40
"""Names of pods, Services and SageMaker jobs are built from it and have to stay below 63."""

NAME_PATTERN = r"[a-z]([-a-z0-9]*[a-z0-9])?"
"""A DNS label that a Service may have, too: those begin with a letter."""

NAME_SENTENCE = (
    "a job's name has at most 40 small letters, digits and dashes, begins with a letter and ends with a letter or digit"
)

MAX_NAMESPACE_CHARS = 63
NAMESPACE_PATTERN = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"

METADATA_FIELDS = (
    "name",
    "generateName",
    "namespace",
    "labels",
    "annotations",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "ownerReferences",
    "finalizers",
    "managedFields",
    "selfLink",
)
"""Of metav1.ObjectMeta: what else stands in metadata is a typing error."""

TRAINER = "trainer"
"""The container of each pod that the ranks run in."""
