"""What holds for all tests."""

import os
import signal

from hypothesis import settings

# A shell starts what it runs in the background with Ctrl-C ignored, and every process of the tests would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)

# What continuous integration says of a change is about the change: it tries the same examples each time. Everybody else
# tries new ones.
settings.register_profile("ci", derandomize=True)
if os.environ.get("CI"):
    settings.load_profile("ci")
