"""What is wrong with a resource, in words for the person who wrote it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class FieldProblem:
    """One thing to correct: the field's path, what was found and what is allowed, and the file's line if known."""

    path: str
    message: str
    line: int | None = None

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message

    def at(self, source: str) -> str:
        """The problem with its place in front: `job.yaml:12: spec.nodes: found 0; allowed are 1 to 10000`."""
        return f"{source}: {self}" if self.line is None else f"{source}:{self.line}: {self}"


class InvalidResource(Exception):
    """A resource that can't run as it is written.

    `problems` holds what is wrong with it, in the file's order, `left_out` counts those that it leaves out. `reason` is
    that of the conditions which say so.
    """

    def __init__(
        self, problems: tuple[FieldProblem, ...], source: str = "resource", left_out: int = 0, reason: str = "Invalid"
    ) -> None:
        lines = [problem.at(source) for problem in problems]
        lines += [f"{source}: and {left_out} more; correct these first"] if left_out else []
        super().__init__("\n".join(lines))
        self.problems = problems
        self.source = source
        self.left_out = left_out
        self.reason = reason
