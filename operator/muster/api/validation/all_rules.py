"""All rules about a resource beyond the types of its fields, in the order in which users see their messages.

The CRD contains the rules that CEL can express, so that the API server rejects violations with the same messages.
muster checks all rules again, because the cluster's CRD may be older.
"""

from collections.abc import Iterator

from muster.api.document import quote
from muster.api.spec.job import Spec
from muster.api.validation.rule import Rule, Violation
from muster.api.validation.rules.data import DATA_RULES
from muster.api.validation.rules.elastic import ELASTIC_RULES
from muster.api.validation.rules.environment import ENVIRONMENT_RULES
from muster.api.validation.rules.failure_policy import FAILURE_POLICY_RULES
from muster.api.validation.rules.launch import LAUNCH_RULES
from muster.api.validation.rules.mpi.rules import MPI_RULES
from muster.api.validation.rules.overrides import OVERRIDE_RULES
from muster.api.validation.rules.placement import PLACEMENT_RULES
from muster.api.validation.rules.pods.field_rules import POD_FIELD_RULES
from muster.api.validation.rules.pods.template import TEMPLATE_RULES
from muster.api.validation.rules.sagemaker.data import SAGEMAKER_DATA_RULES
from muster.api.validation.rules.sagemaker.distribution import DISTRIBUTION_RULES
from muster.api.validation.rules.sagemaker.rules import SAGEMAKER_RULES
from muster.api.validation.rules.sagemaker.start import START_RULES
from muster.api.validation.rules.sagemaker.support import SUPPORT_RULES
from muster.api.validation.rules.source import SOURCE_RULES
from muster.api.validation.rules.spares import SPARE_RULES
from muster.api.validation.rules.template_ref import TEMPLATE_REF_RULES


def _check_repeated_names(spec: Spec) -> Iterator[Violation]:
    lists = {
        "env": [variable.name for variable in spec.env],
        "metrics": [metric.name for metric in spec.metrics],
        "inputs": [channel.name for channel in spec.inputs],
    }
    for field, names in lists.items():
        for index, name in enumerate(names):
            if name in names[:index]:
                yield Violation((field, index, "name"), f"{quote(name)} twice")


RULES_AFTER_START: tuple[Rule, ...] = (
    Rule(
        schema_paths=("spec",),
        rationale="muster would use only one of two entries with the same name.",  # list maps in the CRD check this
        message="each name may occur only once; remove or rename one",
        find_violations=_check_repeated_names,
    ),
    *TEMPLATE_REF_RULES,
    *LAUNCH_RULES,
    *MPI_RULES,
    *ENVIRONMENT_RULES,
    *DATA_RULES,
    *SOURCE_RULES,
    *TEMPLATE_RULES,
    *OVERRIDE_RULES,
    *PLACEMENT_RULES,
    *SAGEMAKER_RULES,
    *DISTRIBUTION_RULES,
    *SUPPORT_RULES,
    *START_RULES,
    *SAGEMAKER_DATA_RULES,
    *FAILURE_POLICY_RULES,
    *SPARE_RULES,
    *ELASTIC_RULES,
)
"""Rules that even a job that has started must satisfy, because muster's other modules rely on them."""

RULES: tuple[Rule, ...] = (*RULES_AFTER_START, *POD_FIELD_RULES)
"""All rules, including those that a job must satisfy only before it starts."""
