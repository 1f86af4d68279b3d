"""What makes and checks a release: run from the Makefile and from the workflows, a file for each step."""
