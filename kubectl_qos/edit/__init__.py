"""A change of requests and limits as a value: what it does, and the patch that would land it. Pure."""
