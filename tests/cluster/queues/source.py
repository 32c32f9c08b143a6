"""A real queue from its Go module: its programs as an image, and the chart and the CRDs that the module contains.

Nothing is built before a test needs it.
"""

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from cluster import images, programs
from cluster.images import Image
from cluster.places import BINARIES, alone_in_cache, used
from cluster.programs import Module
from cluster.say import CannotGoOn

NOBODY = "65532:65532"


@dataclass(frozen=True)
class QueueSource:
    """`go_module` contains the programs of `module`, whose paths in the image are `paths`. `files` are its folders.

    A container without a command runs `entry_point`.
    """

    module: Module
    go_module: str
    paths: Mapping[str, str]
    files: tuple[str, ...]
    entry_point: str

    def provide(self) -> tuple[Image, Path]:
        """Return the image, and the folder with `files`; build them at the first use, which takes minutes.

        Raises CannotGoOn if the module is not available or its build fails.
        """
        with alone_in_cache():
            built = programs.provide(self.module)
            folder = programs.place(self.module).parent
            files = folder / "files"
            if not files.is_dir():
                self._copy_files(files)
            by_path = {self.paths[name]: program for name, program in built.items()}
            image = images.programs_image(
                self._build_image_name(folder), by_path, {"User": NOBODY, "Entrypoint": [self.entry_point]}
            )
            used(folder)
        return image, files

    def _build_image_name(self, folder: Path) -> str:
        return f"cluster.muster.dev/{self.module.name}:{folder.name.rpartition('-')[2]}"

    def _copy_files(self, target: Path) -> None:
        """Copy the folders, because Go's module cache may be emptied."""
        source = self._download()
        with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
            made = Path(scratch) / "files"
            for name in self.files:
                # The files of Go's module cache can't be written, nor its folders be removed.
                shutil.copytree(source / name, made / name, copy_function=shutil.copyfile)
            for folder in (made, *(path for path in made.rglob("*") if path.is_dir())):
                folder.chmod(0o755)
            made.rename(target)

    def _download(self) -> Path:
        command = ["go", "mod", "download", "-json", self.go_module]
        environment = os.environ | {"GOWORK": "off", "GOFLAGS": "-mod=readonly"}
        done = subprocess.run(
            command, check=False, capture_output=True, text=True, cwd=BINARIES / self.module.name, env=environment
        )
        if done.returncode != 0:
            raise CannotGoOn(f"`{' '.join(command)}` failed:\n{done.stdout}{done.stderr}")
        return Path(json.loads(done.stdout)["Dir"])


KUEUE = QueueSource(programs.KUEUE, "sigs.k8s.io/kueue", {"kueue": "manager"}, ("charts/kueue",), "/manager")
SCHEDULER_PLUGINS = QueueSource(
    programs.SCHEDULER_PLUGINS,
    "sigs.k8s.io/scheduler-plugins",
    {"gang-scheduler": "bin/kube-scheduler", "pod-group-controller": "bin/controller"},
    ("manifests/install/charts/as-a-second-scheduler", "config/crd/bases"),
    "/bin/controller",
)
