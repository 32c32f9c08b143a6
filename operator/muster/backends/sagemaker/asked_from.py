"""From where muster asks for a job's training jobs, and on whose behalf. Pure."""

from muster.objects.aws.place import Place

EXTERNAL_ID_PREFIX = "muster/"


def asked_from(region: str, assume_role_arn: str | None, namespace: str) -> Place:
    """The place of a namespace's jobs; `assume_role_arn` None: as the operator itself.

    The external id is made here and no job can say another one. So the role's owner decides in its trust policy
    for which namespaces muster gets in, whatever the operator's configuration allows by mistake (IAM User Guide, "The
    confused deputy problem").
    """
    if assume_role_arn is None:
        return Place(region)
    return Place(region, assume_role_arn, f"{EXTERNAL_ID_PREFIX}{namespace}")
