"""Runs the hook and then the user's own sitecustomize. Python loads this module from PYTHONPATH at its start.

A rank may run any Python, including 2.7, and the module has to load in it: it has no functions and no annotations.
"""

import os
import sys

# The user's sitecustomize replaces this module in sys.modules. Keep a reference, because old Pythons would clear it.
_this_module = sys.modules.pop(__name__)
_site = os.path.dirname(__file__)
_archive = os.path.dirname(os.path.dirname(_site))

sys.path[:] = [_entry for _entry in sys.path if _entry != _site]
sys.path_importer_cache.pop(_site, None)
if sys.version_info >= (3, 8) and "MUSTER_HOOK" in os.environ:
    # Put the archive first while importing, so that Python does not import an installed package of the same name.
    sys.path.insert(0, _archive)
    try:
        from muster_worker.rank import hook as _hook

        _hook.install(_archive)
    except Exception:  # noqa: BLE001, S110 - the training must continue; the agent reports that there is no hook
        pass
    finally:
        sys.path.remove(_archive)
        sys.path.append(_archive)

# If the user has no sitecustomize, or if it raises an exception, Python handles the exception as usual.
try:
    import sitecustomize  # type: ignore[import-not-found]  # noqa: F401
except BaseException:
    sys.modules[__name__] = _this_module  # the import system of Python 3.8 and 3.9 removes it itself
    raise
