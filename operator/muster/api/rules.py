"""Rules about a resource that go beyond its fields' types: an ordered list, each with its reason.

If CEL can express a rule, the CRD has it with the same message, so that the API server rejects what muster would
reject. muster checks again: an old CRD may have let something through.
"""

from collections.abc import Iterator

from muster.api.data_rules import DATA_RULES
from muster.api.document import quoted
from muster.api.environment_rules import ENVIRONMENT_RULES
from muster.api.failure_policy_rules import FAILURE_POLICY_RULES
from muster.api.launch_rules import LAUNCH_RULES
from muster.api.mpi_rules import MPI_RULES
from muster.api.override_rules import OVERRIDE_RULES
from muster.api.placement_rules import PLACEMENT_RULES
from muster.api.pod_field_rules import POD_FIELD_RULES
from muster.api.rule import Breach, Rule
from muster.api.sagemaker_data_rules import SAGEMAKER_DATA_RULES
from muster.api.sagemaker_distribution_rules import DISTRIBUTION_RULES
from muster.api.sagemaker_rules import SAGEMAKER_RULES
from muster.api.sagemaker_start_rules import START_RULES
from muster.api.sagemaker_support_rules import SUPPORT_RULES
from muster.api.source_rules import SOURCE_RULES
from muster.api.spec import Spec
from muster.api.template_rules import TEMPLATE_RULES


def _repeated_names(spec: Spec) -> Iterator[Breach]:
    lists = {
        "env": [variable.name for variable in spec.env],
        "metrics": [metric.name for metric in spec.metrics],
        "inputs": [channel.name for channel in spec.inputs],
    }
    for field, names in lists.items():
        for index, name in enumerate(names):
            if name in names[:index]:
                yield Breach((field, index, "name"), f"{quoted(name)} twice")


LASTING_RULES: tuple[Rule, ...] = (
    Rule(
        places=("spec",),
        why="One of the two would be lost.",  # the CRD has list maps for it
        sentence="each name may occur only once; remove or rename one",
        breaches=_repeated_names,
    ),
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
)
"""Rules that a job must meet as long as it exists: the rest of muster relies on them."""

RULES: tuple[Rule, ...] = (*LASTING_RULES, *POD_FIELD_RULES)
"""Rules that a job must meet before it starts."""
