"""Loaded by every Python that finds this folder on PYTHONPATH: lets the hook in, then makes way for the user's own.

Written for any Python, 2.7 included, because the rank may run any: without functions and annotations.
"""

import os
import sys

# The user's sitecustomize takes our place in sys.modules. A reference keeps old Pythons from emptying this module.
_ours = sys.modules.pop(__name__)
_site = os.path.dirname(__file__)
_archive = os.path.dirname(os.path.dirname(_site))

sys.path[:] = [_entry for _entry in sys.path if _entry != _site]
sys.path_importer_cache.pop(_site, None)
if sys.version_info >= (3, 8) and "MUSTER_HOOK" in os.environ:
    # first for a moment: the archive's package is the one that fits the agent, whatever else is installed
    sys.path.insert(0, _archive)
    try:
        from muster_worker.rank import hook as _hook

        _hook.enter(_archive)
    except Exception:  # noqa: BLE001, S110 - the training comes first; the agent reports that the hook isn't there
        pass
    finally:
        sys.path.remove(_archive)
        sys.path.append(_archive)

# Raises ImportError when the user has none, and whatever the user's own raises, as it would without us.
try:
    import sitecustomize  # type: ignore[import-not-found]  # noqa: F401
except BaseException:
    sys.modules[__name__] = _ours  # the importer of Python 3.8 and 3.9 wants to remove it itself
    raise
