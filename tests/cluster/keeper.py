"""The first process of a node: it holds the node's namespaces, and all processes of the node end with it.

Run as `unshare --mount --pid --fork --net --uts python keeper.py NODE FOLDER`. When commands can enter the node, it
prints its process id on the machine. It imports nothing of this package.
"""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

# The fixed paths of containerd and kubelet, separate for each node of the machine. They are in memory and removed with
# the node: unpacked images are thousands of files, which take 20 s to delete from a disk.
IN_MEMORY = ("/var/lib", "/run")


def main(name: str, folder: Path) -> None:
    """Set up the node in the new namespaces, then reap orphaned processes until killed."""
    # Before the commands below can cause SIGCHLD.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
    # This /proc still shows the machine's process ids, which differ from getpid.
    process = Path("/proc/self").readlink().name
    socket.sethostname(name)
    logs = folder / "log"
    logs.mkdir()
    mount("--bind", str(logs), "/var/log")
    for own in IN_MEMORY:
        mount("-t", "tmpfs", "-o", "mode=755", "tmpfs", own)
    mount("-t", "proc", "proc", "/proc")
    # Pods' containers see mounts of the kubelet.
    mount("--make-rshared", "/")
    Path("/run/lock").mkdir()
    # The node forwards the packets of its pods.
    Path("/proc/sys/net/ipv4/ip_forward").write_text("1", encoding="ascii")
    sys.stdout.write(f"{process}\n")
    sys.stdout.flush()
    bury()


def mount(*arguments: str) -> None:
    """Mount in this node only."""
    subprocess.run(["mount", *arguments], check=True)


def bury() -> None:
    """Reap orphaned processes, as PID 1 has to do."""
    while True:
        signal.sigwait({signal.SIGCHLD})
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            continue


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
