"""What holds for all tests."""

import signal

pytest_plugins = ["temporary_folder"]

# A shell starts what it runs in the background with Ctrl-C ignored, and every process of the tests would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
