"""Gets this rank's address for other ranks from libnccl, which needs no GPU for it."""

import ctypes
import os
import pathlib
import sys

os.environ["NCCL_DEBUG"] = "INFO"
found = [file for folder in sys.path for file in pathlib.Path(folder).glob("nvidia/nccl/lib/libnccl.so.*")]
assert ctypes.CDLL(str(found[0])).ncclGetUniqueId((ctypes.c_char * 128)()) == 0
