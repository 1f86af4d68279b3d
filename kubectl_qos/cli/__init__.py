"""Shell 1: the command line. One file per command: parse, fetch, predict, print.

Never imports textual, rich or the kubernetes package.
"""
