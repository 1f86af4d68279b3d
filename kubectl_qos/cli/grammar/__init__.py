"""The words and flags of each command, a file each; `shared` has those of every command.

Each has SUMMARY, DESCRIPTION and fill(parser). Not here: what the commands do with them.
"""
