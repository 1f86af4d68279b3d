"""Runs first in the binary: programs that it starts get the environment that it was started in itself.

PyInstaller's bootloader puts the binary's own libraries first in LD_LIBRARY_PATH, keeps what was there in
LD_LIBRARY_PATH_ORIG, and starts itself again, since the loader reads it only then. A credential plugin that
inherited it would run with our OpenSSL; and one that runs `kubectl qos` would hand on the bootloader's notes,
_PYI_..., by which that takes itself to have been started again already.
"""

import os
import sys

if sys.platform == "linux":
    given = os.environ.pop("LD_LIBRARY_PATH_ORIG", None)
    os.environ.pop("LD_LIBRARY_PATH", None)
    if given is not None:
        os.environ["LD_LIBRARY_PATH"] = given

for name in [name for name in os.environ if name.startswith("_PYI_")]:
    del os.environ[name]
