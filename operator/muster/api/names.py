"""The resource's group, version and kind, and the rules for its metadata.name."""

GROUP = "muster.dev"
VERSION = "v1alpha1"
API_VERSION = f"{GROUP}/{VERSION}"
KIND = "DistributedTrainingJob"
PLURAL = "distributedtrainingjobs"
SHORT_NAME = "dtj"

MAX_NAME_CHARS = 40
"""Names of pods, Services and SageMaker jobs contain it and must have at most 63 characters."""

NAME_PATTERN = r"[a-z]([-a-z0-9]*[a-z0-9])?"
"""A DNS label that a Service may have, too: its name begins with a letter."""

NAME_MESSAGE = (
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
"""The fields of metav1.ObjectMeta: any other key in metadata is a mistake."""

TRAINER = "trainer"
"""The container of each pod in which the ranks run."""
