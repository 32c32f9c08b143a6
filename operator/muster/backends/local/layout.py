"""The paths of a local run: outputs in the user's folder, sockets and secrets in a private one."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

RUNS_FOLDER = "muster-runs"

FRAME_FILE = "board.json"

LOGS_FOLDER = "logs"


@dataclass(frozen=True)
class NodeLayout:
    """One node's paths. `root` is its /opt/ml; `run` is private, and short: a socket's path has at most 107 bytes."""

    root: Path
    run: Path
    log: Path

    @property
    def token(self) -> Path:
        return self.run / "token"

    @property
    def channels(self) -> Path:
        return self.root / "input" / "data"


@dataclass(frozen=True)
class RunLayout:
    """A run's paths: `folder` is the user's, and `private` is removed when the run ends."""

    folder: Path
    private: Path
    job: str

    @property
    def model(self) -> Path:
        return self.folder / "model"

    @property
    def output(self) -> Path:
        return self.folder / "output"

    @property
    def checkpoints(self) -> Path:
        return self.folder / "checkpoints"

    @property
    def resource(self) -> Path:
        return self.folder / "job.yaml"

    @property
    def frame(self) -> Path:
        """The newest state of the ranks, for `muster board`."""
        return self.folder / FRAME_FILE

    @property
    def archive(self) -> Path:
        return self.private / "agent.pyz"

    @property
    def agent(self) -> Path:
        """The folder with the agent's modules, which all nodes share."""
        return self.private / "agent"

    @property
    def plan(self) -> Path:
        return self.private / "plan.json"

    @property
    def sync(self) -> Path:
        """The socket of the process that syncs files with S3."""
        return self.private / "sync.sock"

    @property
    def hosts(self) -> Path:
        return self.private / "hosts"

    def get_node_name(self, node: int) -> str:
        return f"{self.job}-{node}"

    def get_node(self, node: int) -> NodeLayout:
        return NodeLayout(
            root=self.folder / "nodes" / str(node),
            run=self.private / str(node),
            log=self.folder / LOGS_FOLDER / f"{self.get_node_name(node)}.log",
        )


def run_folder(base: Path, job: str, uid: str) -> Path:
    """Return the default folder of a run, with eight characters of the uid to make it unique."""
    return base / RUNS_FOLDER / f"{job}-{uid[:8]}"


def make_folders(layout: RunLayout, nodes: int, checkpoints: Path | None) -> None:
    """Create the run's folders; all nodes share model, output and checkpoints through links.

    `checkpoints` is the user's folder for checkpoints; None: a folder of the run. Raises `OSError`.
    """
    shared = {"model": layout.model, "output": layout.output, "checkpoints": checkpoints or layout.checkpoints}
    for folder in (*shared.values(), layout.folder / LOGS_FOLDER):
        folder.mkdir(parents=True, exist_ok=True)
    # remove the failure file of an earlier run; keep its model and checkpoints, which belong to the user
    (layout.output / "failure").unlink(missing_ok=True)
    for index in range(nodes):
        node = layout.get_node(index)
        node.channels.mkdir(parents=True, exist_ok=True)
        node.run.mkdir(mode=0o700, parents=True, exist_ok=True)
        node.log.unlink(missing_ok=True)
        for name, target in shared.items():
            link_folder(node.root / name, target)


def link_folder(link: Path, target: Path) -> None:
    """Make `link` point to `target`, and replace an existing link. Raises `OSError` if `link` is a real folder."""
    if link.is_symlink():
        link.unlink()
    link.symlink_to(target.resolve(), target_is_directory=True)
