"""The rules of `check`, its outputs, its settings and its policies."""
