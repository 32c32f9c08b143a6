"""Python loads this module from PYTHONPATH at its start. It runs the hook, then the user's own sitecustomize.

It has to load in any Python, 2.7 included, because the rank may run any: no functions and no annotations.
"""

import os
import sys

# The user's sitecustomize replaces this module in sys.modules. Old Pythons clear a module without references.
_ours = sys.modules.pop(__name__)
_site = os.path.dirname(__file__)
_archive = os.path.dirname(os.path.dirname(_site))

sys.path[:] = [_entry for _entry in sys.path if _entry != _site]
sys.path_importer_cache.pop(_site, None)
if sys.version_info >= (3, 8) and "MUSTER_HOOK" in os.environ:
    # First for a moment, so that Python imports the package in the archive and no installed one.
    sys.path.insert(0, _archive)
    try:
        from muster_worker.rank import hook as _hook

        _hook.enter(_archive)
    except Exception:  # noqa: BLE001, S110 - the training comes first; the agent reports that it isn't hooked
        pass
    finally:
        sys.path.remove(_archive)
        sys.path.append(_archive)

# Let the ImportError of a missing user's sitecustomize, or its own exception, reach Python as usual.
try:
    import sitecustomize  # type: ignore[import-not-found]  # noqa: F401
except BaseException:
    sys.modules[__name__] = _ours  # the import system of Python 3.8 and 3.9 removes it itself
    raise
