"""What kernels and daemons write of an OOM kill, from lines whose prefixes host/ has taken off."""
