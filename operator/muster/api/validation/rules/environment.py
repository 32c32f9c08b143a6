"""Rules about the environment of the ranks, the arguments of their command, and resources."""

import re
from collections.abc import Iterator

from muster.api.document import JSON, Path, quoted
from muster.api.spec.job import EnvVar, Spec
from muster.api.validation.rule import Breach, Rule
from muster_worker.contract.rendezvous import RENDEZVOUS_PREFIXES, RENDEZVOUS_VARIABLES, is_rendezvous_variable

_HYPERPARAMETER = re.compile(r"[^\s=\x00-\x1f-][^\s=\x00-\x1f]{0,255}")
_QUANTITY = re.compile(r"\+?([0-9]+(\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?")
_REFERENCES = ("secretKeyRef", "configMapKeyRef", "fieldRef", "resourceFieldRef")


def _null_characters(spec: Spec) -> Iterator[Breach]:
    texts: list[tuple[Path, str]] = [(("command", index), word) for index, word in enumerate(spec.command)]
    texts += [(("env", index, "value"), variable.value) for index, variable in enumerate(spec.env)]
    texts += [(("hyperparameters", name), str(value)) for name, value in spec.hyperparameters.items()]
    for path, text in texts:
        if "\0" in text:
            yield Breach(path, "one")


def _reserved_variables(spec: Spec) -> Iterator[Breach]:
    for index, variable in enumerate(spec.env):
        if is_rendezvous_variable(variable.name):
            yield Breach(("env", index, "name"), variable.name)


def _two_values(spec: Spec) -> Iterator[Breach]:
    for index, variable in enumerate(spec.env):
        if variable.value_from is not None and variable.value:
            yield Breach(("env", index), "both")


def _references(spec: Spec) -> Iterator[Breach]:
    for index, variable in enumerate(spec.env):
        if variable.value_from is not None and not _is_reference(variable):
            # The API server keeps no order of fields: sort them, so that a resource and a file get the same message.
            value = ", ".join(quoted(key) for key in sorted(variable.value_from))
            yield Breach(("env", index, "valueFrom"), value or "none of them")


def _is_reference(variable: EnvVar) -> bool:
    value = variable.value_from or {}
    return len(value) == 1 and all(key in _REFERENCES and isinstance(item, dict) for key, item in value.items())


def _hyperparameter_names(spec: Spec) -> Iterator[Breach]:
    for name in spec.hyperparameters:
        if not _HYPERPARAMETER.fullmatch(name):
            yield Breach(("hyperparameters", name), quoted(name))


def _quantities(spec: Spec) -> Iterator[Breach]:
    for field, amounts in (("limits", spec.resources.limits), ("requests", spec.resources.requests)):
        for name, amount in amounts.items():
            if not _is_quantity(amount):
                yield Breach(("resources", field, name), quoted(amount) if isinstance(amount, str) else str(amount))


def _is_quantity(amount: JSON) -> bool:
    if isinstance(amount, str):
        return _QUANTITY.fullmatch(amount) is not None
    return isinstance(amount, int | float) and amount >= 0


ENVIRONMENT_RULES = (
    Rule(
        places=("spec",),
        why="The system ends a string at it, so the rest would be lost.",
        sentence="the null character can't be part of a program's arguments or environment; remove it",
        breaches=_null_characters,
    ),
    Rule(
        places=("spec.env[].name",),
        why="Ranks with a world size or rendezvous other than their peers' wait forever.",
        sentence="muster sets this variable itself; choose another name",
        breaches=_reserved_variables,
        cel=f"!(self in [{', '.join(repr(name) for name in RENDEZVOUS_VARIABLES)}])"
        f" && !self.matches('^({'|'.join(RENDEZVOUS_PREFIXES)})')",
    ),
    Rule(
        places=("spec.env[]",),
        why="One of the two would be ignored.",
        sentence="a variable has value or valueFrom, not both; remove one",
        breaches=_two_values,
        cel="!has(self.valueFrom) || self.value == ''",
    ),
    Rule(
        places=("spec.env[].valueFrom",),
        why="The variable would be empty, or the API server would reject each pod.",
        sentence=f"exactly one of {', '.join(_REFERENCES)} is needed, with its fields, as in a container",
        breaches=_references,
    ),
    Rule(
        places=("spec.hyperparameters",),
        why="They become --name value; another name would change the meaning of the options around it.",
        sentence="a name has 1 to 256 characters, none of them a space or =, and doesn't begin with a dash",
        breaches=_hyperparameter_names,
    ),
    Rule(
        places=("spec.resources",),
        why="The API server would reject every pod.",
        sentence="a quantity is a number that is not negative, maybe with a unit: 8, 0.5, 500m, 64Gi",
        breaches=_quantities,
    ),
)
