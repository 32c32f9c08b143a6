"""The test of whether ranks can read each other's memory, in a process that seccomp forbids it, and in another one."""

import subprocess
import sys

import pytest

FILTER = """
import ctypes, platform, struct
number = {"x86_64": 310, "aarch64": 270}[platform.machine()]
code = [(0x20, 0, 0, 0), (0x15, 0, 1, number), (0x06, 0, 0, 0x00050001), (0x06, 0, 0, 0x7FFF0000)]
filters = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *each) for each in code))
program = struct.pack("@HxxxxxxP", len(code), ctypes.addressof(filters))
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0  # PR_SET_NO_NEW_PRIVS
assert libc.prctl(22, 2, program, 0, 0) == 0  # PR_SET_SECCOMP, SECCOMP_MODE_FILTER: EPERM for that call
"""
ASK = "from muster_worker.machine import memory_reading; print(memory_reading.is_forbidden())"


@pytest.mark.parametrize(("before", "answer"), [("", "False"), (FILTER, "True")])
def test_the_kernel_is_asked(before: str, answer: str) -> None:
    done = subprocess.run([sys.executable, "-c", f"{before}\n{ASK}"], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == answer
