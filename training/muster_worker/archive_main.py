"""What Python runs of the agent's archive, where it is called `__main__`: the agent, or a word on why it can't be.

Written for any Python, 2.7 included, because the image may have any: without functions and annotations.
"""

import sys

# contract.UNUSABLE_PYTHON; its module can't be read by an old Python
SAID = "muster's agent can't run on this python3: "
EXIT_CODE = 69  # sysexits.h: a program that is needed isn't there

if __name__ == "__main__":
    _is = "it is Python " + ".".join(map(str, sys.version_info[:2]))
    if sys.version_info >= (3, 8):  # noqa: UP036 - this is where an older one is told so
        try:
            from muster_worker.entry import main

            sys.exit(main(sys.argv[1:]))
        except ImportError as _error:  # a minimal one, or one built without a library
            if sys.argv[1:2] != ["node"]:
                raise
            _is += " without the module " + str(_error.name)
    sys.stderr.write(SAID + _is + "\n")
    if "--termination-log" in sys.argv[:-1]:
        with open(sys.argv[sys.argv.index("--termination-log") + 1], "w") as _log:
            _log.write(SAID + _is)
    sys.exit(EXIT_CODE)
