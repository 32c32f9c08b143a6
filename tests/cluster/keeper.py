"""The first process of a node: it holds the node's namespaces, and all that runs in the node dies with it.

Run as `unshare --mount --pid --fork --net --uts python keeper.py NODE FOLDER`. It says its process id, as the machine
sees it, on standard output when the node is ready to be entered. It imports nothing of this package.
"""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

# What kubelet and containerd have fixed paths in, so that two nodes on one machine don't meet there.
OWN = ("/var/lib", "/var/log")


def main(name: str, folder: Path) -> None:
    """Make the node out of the fresh namespaces, then bury the orphaned until killed."""
    # Before SIGCHLD can come from the commands below.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
    # This /proc is still the machine's, which knows another number than getpid.
    process = Path("/proc/self").readlink().name
    socket.sethostname(name)
    for own in OWN:
        source = folder / own.strip("/").replace("/", "-")
        source.mkdir(parents=True, exist_ok=True)
        mount("--bind", str(source), own)
    mount("-t", "tmpfs", "-o", "mode=755", "tmpfs", "/run")
    mount("-t", "proc", "proc", "/proc")
    # What the kubelet mounts for a pod is seen by the pod's containers.
    mount("--make-rshared", "/")
    Path("/run/lock").mkdir()
    # Pods are behind the node.
    Path("/proc/sys/net/ipv4/ip_forward").write_text("1", encoding="ascii")
    sys.stdout.write(f"{process}\n")
    sys.stdout.flush()
    bury()


def mount(*arguments: str) -> None:
    """Mount in this node only."""
    subprocess.run(["mount", *arguments], check=True)


def bury() -> None:
    """Reap whatever is handed to a first process."""
    while True:
        signal.sigwait({signal.SIGCHLD})
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            continue


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
