"""Rules about the environment of the ranks, the arguments of their command, and resources."""

import re
from collections.abc import Iterator

from muster.api.document import JSON, FieldPath, quote
from muster.api.spec.job import EnvVar, Spec
from muster.api.validation.rule import Rule, Violation
from muster_worker.contract.rendezvous import RENDEZVOUS_PREFIXES, RENDEZVOUS_VARIABLES, is_rendezvous_variable

_HYPERPARAMETER = re.compile(r"[^\s=\x00-\x1f-][^\s=\x00-\x1f]{0,255}")
_QUANTITY = re.compile(r"\+?([0-9]+(\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?")
_REFERENCES = ("secretKeyRef", "configMapKeyRef", "fieldRef", "resourceFieldRef")


def _check_null_characters(spec: Spec) -> Iterator[Violation]:
    texts: list[tuple[FieldPath, str]] = [(("command", index), argument) for index, argument in enumerate(spec.command)]
    texts += [(("env", index, "value"), variable.value) for index, variable in enumerate(spec.env)]
    texts += [(("hyperparameters", name), str(value)) for name, value in spec.hyperparameters.items()]
    for path, text in texts:
        if "\0" in text:
            yield Violation(path, "a null character")


def _check_reserved_variables(spec: Spec) -> Iterator[Violation]:
    for index, variable in enumerate(spec.env):
        if is_rendezvous_variable(variable.name):
            yield Violation(("env", index, "name"), variable.name)


def _check_two_values(spec: Spec) -> Iterator[Violation]:
    for index, variable in enumerate(spec.env):
        if variable.value_from is not None and variable.value:
            yield Violation(("env", index), "value and valueFrom")


def _check_references(spec: Spec) -> Iterator[Violation]:
    for index, variable in enumerate(spec.env):
        if variable.value_from is not None and not _is_reference(variable):
            # The API server does not keep the order of fields. Sort them, so that resources and files get one message.
            value = ", ".join(quote(key) for key in sorted(variable.value_from))
            yield Violation(("env", index, "valueFrom"), value or "none")


def _is_reference(variable: EnvVar) -> bool:
    value = variable.value_from or {}
    return len(value) == 1 and all(key in _REFERENCES and isinstance(item, dict) for key, item in value.items())


def _check_hyperparameter_names(spec: Spec) -> Iterator[Violation]:
    for name in spec.hyperparameters:
        if not _HYPERPARAMETER.fullmatch(name):
            yield Violation(("hyperparameters", name), quote(name))


def _check_quantities(spec: Spec) -> Iterator[Violation]:
    for field, quantities in (("limits", spec.resources.limits), ("requests", spec.resources.requests)):
        for name, quantity in quantities.items():
            if not _is_quantity(quantity):
                yield Violation(
                    ("resources", field, name), quote(quantity) if isinstance(quantity, str) else str(quantity)
                )


def _is_quantity(quantity: JSON) -> bool:
    if isinstance(quantity, str):
        return _QUANTITY.fullmatch(quantity) is not None
    return isinstance(quantity, int | float) and quantity >= 0


ENVIRONMENT_RULES = (
    Rule(
        schema_paths=("spec",),
        rationale="The system ends a string at a null character, so the rest of the string would be lost.",
        message="the null character can't be part of a program's arguments or environment; remove the character",
        find_violations=_check_null_characters,
    ),
    Rule(
        schema_paths=("spec.env[].name",),
        rationale="Ranks whose world size or rendezvous differs from their peers' wait forever.",
        message="muster sets this variable itself; choose another name",
        find_violations=_check_reserved_variables,
        cel=f"!(self in [{', '.join(repr(name) for name in RENDEZVOUS_VARIABLES)}])"
        f" && !self.matches('^({'|'.join(RENDEZVOUS_PREFIXES)})')",
    ),
    Rule(
        schema_paths=("spec.env[]",),
        rationale="muster would ignore either value or valueFrom.",
        message="a variable has value or valueFrom, not both; remove one",
        find_violations=_check_two_values,
        cel="!has(self.valueFrom) || self.value == ''",
    ),
    Rule(
        schema_paths=("spec.env[].valueFrom",),
        rationale="The variable would be empty, or the API server would reject each pod.",
        message=f"exactly one of {', '.join(_REFERENCES)} is needed, with its fields, as in a container",
        find_violations=_check_references,
    ),
    Rule(
        schema_paths=("spec.hyperparameters",),
        rationale="muster appends hyperparameters as --name value. Other names would change the arguments beside them.",
        message="a name has 1 to 256 characters, none of them a space or =, and doesn't begin with a dash",
        find_violations=_check_hyperparameter_names,
    ),
    Rule(
        schema_paths=("spec.resources",),
        rationale="The API server would reject every pod.",
        message="a quantity is a number that is not negative, maybe with a unit: 8, 0.5, 500m, 64Gi",
        find_violations=_check_quantities,
    ),
)
