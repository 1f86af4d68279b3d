"""Runs first in the binary and restores the original environment for the programs that it starts.

PyInstaller's bootloader puts the binary's own libraries first in LD_LIBRARY_PATH, keeps what was there in
LD_LIBRARY_PATH_ORIG, and starts itself again, since the loader reads it only then. A credential plugin that
inherited it would run with our OpenSSL. One that runs `kubectl qos` would pass on the bootloader's variables
_PYI_..., which mean that the second start has already happened.
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
