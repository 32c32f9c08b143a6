"""`__main__` of the agent's archive, packed or not: runs the agent, or reports why this Python can't run it.

This module has to load in any Python, including 2.7, so it has no functions and no annotations.
"""

import sys

# Equal to contract.UNUSABLE_PYTHON. An old Python can't import that module.
MESSAGE_START = "muster's agent can't run on this python3: "
EXIT_CODE = 69  # sysexits.h: EX_UNAVAILABLE

if __name__ == "__main__":
    _archive = __file__.rpartition("/")[0]
    if _archive not in sys.path:  # Python runs this file of an unpacked archive as a script, in isolated mode
        sys.path.insert(0, _archive)
    _reason = "it is Python " + ".".join(map(str, sys.version_info[:2]))
    if sys.version_info >= (3, 8):  # noqa: UP036 - report an older Python
        try:
            from muster_worker.entry import main

            sys.exit(main(sys.argv[1:]))
        except ImportError as _error:  # a Python without part of the standard library
            if sys.argv[1:2] != ["node"]:
                raise
            _reason += " without the module " + str(_error.name)
    sys.stderr.write(MESSAGE_START + _reason + "\n")
    if "--termination-log" in sys.argv[:-1]:
        with open(sys.argv[sys.argv.index("--termination-log") + 1], "w") as _log:
            _log.write(MESSAGE_START + _reason)
    sys.exit(EXIT_CODE)
