"""Questions that people ask of a snapshot, answered as values: no words, no columns, no input or output."""
