"""Shell 2: the terminal UI.

Facts flow down as one immutable value, messages flow up. Sources come in from outside: nothing here knows
files or clusters, and nothing here is imported by the command line before a person asks for the UI.
"""
