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

# What containerd and kubelet have fixed paths in, so that two nodes on one machine don't meet there. In memory, it's
# filled in a moment, removed with the node: unpacked images are thousands of files, which a disk drops in 20 s.
IN_MEMORY = ("/var/lib", "/run")


def main(name: str, folder: Path) -> None:
    """Make the node out of the fresh namespaces, then bury the orphaned until killed."""
    # Before SIGCHLD can come from the commands below.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
    # This /proc is still the machine's, which knows another number than getpid.
    process = Path("/proc/self").readlink().name
    socket.sethostname(name)
    logs = folder / "log"
    logs.mkdir()
    mount("--bind", str(logs), "/var/log")
    for own in IN_MEMORY:
        mount("-t", "tmpfs", "-o", "mode=755", "tmpfs", own)
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
