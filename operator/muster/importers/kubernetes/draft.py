"""A job under construction, which knows the field of the manifest that each of its fields comes from. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from muster.api.document import JSON, Document, FieldPath, format_path
from muster.api.field_problems import InvalidResource
from muster.api.json_fields import read_mappings, read_string
from muster.api.names import API_VERSION, KIND
from muster.api.spec.job import Spec
from muster.api.validation.validate import validate
from muster.importers.field_order import order_fields
from muster.importers.kubernetes.metadata import Metadata
from muster.importers.kubernetes.report import Location, Report


class Draft:
    """The fields of a job. `others` are further resources for the job, such as its HorizontalPodAutoscaler."""

    def __init__(self, metadata: Metadata) -> None:
        self.metadata = metadata
        self.others: list[dict[str, JSON]] = []
        self._spec: dict[str, JSON] = {}
        self._origins: dict[FieldPath, Location] = {(): metadata.location}

    @property
    def name(self) -> str:
        """The job's name."""
        return self.metadata.name

    def get(self, field: str) -> JSON:
        """Return the value of a field of the spec; None if it is unset."""
        return self._spec.get(field)

    def set(self, field: str, value: JSON, origin: Location) -> None:
        """Set a field of the spec unless the value is empty."""
        if value not in (None, [], {}):
            self._spec[field] = value
            self.add_origin(("spec", field), origin)

    def add_origin(self, path: FieldPath, origin: Location) -> None:
        """Remember the origin of the resource's field at `path`, and of all fields below it."""
        self._origins[path] = origin

    def find_origin(self, path: FieldPath) -> Location:
        """Return the origin of the resource's field at `path`, or of its nearest parent."""
        return next(self._origins[path[:end]] for end in range(len(path), -1, -1) if path[:end] in self._origins)

    def list_texts(self) -> Iterator[tuple[FieldPath, str]]:
        """Yield the words of the command and the values of the variables, with their paths."""
        command, env = self._spec.get("command"), read_mappings(self._spec.get("env"))
        for index, word in enumerate(command if isinstance(command, list) else []):
            yield ("spec", "command", index), str(word)
        for index, entry in enumerate(env):
            yield ("spec", "env", index), read_string(entry.get("value"))

    def build_resource(self) -> dict[str, JSON]:
        """Return the job's resource."""
        return {
            "apiVersion": API_VERSION,
            "kind": KIND,
            "metadata": self.metadata.build(),
            "spec": order_fields(self._spec, Spec),
        }

    def check(self, report: Report) -> None:
        """Validate the job, and report its problems at the fields of the manifest."""
        # The validation sorts problems by line and returns the line of the nearest parent. So give each origin a line.
        paths = sorted(self._origins, key=str)
        lines: Mapping[FieldPath, int] = {path: number for number, path in enumerate(paths, 1)}
        try:
            validate(Document(self.build_resource(), lines=lines))
        except InvalidResource as invalid:
            for problem in invalid.problems:
                path = paths[(problem.line or 1) - 1]
                self._report(path, problem.path, problem.message, report)

    def _report(self, path: FieldPath, problem_path: str, message: str, report: Report) -> None:
        origin = self._origins[path]
        prefix = format_path(path)
        if prefix and problem_path.startswith(prefix):
            report.add(origin, message, problem_path.removeprefix(prefix))
        elif problem_path.startswith("metadata"):
            report.add(origin.child(*problem_path.split(".")), message)
        else:
            report.add(origin, f"as {problem_path} of the imported job: {message}")
