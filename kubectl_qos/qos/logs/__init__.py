"""Parsers for what kernels and daemons log about an OOM kill; host/ removes the prefixes of lines."""
