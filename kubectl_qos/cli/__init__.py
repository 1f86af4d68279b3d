"""Shell 1: the command line. One file per command: parse, fetch, predict, print.

Never imports textual or rich; the kubernetes package only when a cluster is contacted.
"""
