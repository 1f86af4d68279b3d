"""A change of requests and limits as a value: its effects, its findings, and the request that applies it."""
