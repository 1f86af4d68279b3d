"""Steps that create and check a release, run by the Makefile and the workflows; one file per step."""
