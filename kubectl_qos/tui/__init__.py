"""The terminal UI.

Facts flow down as one immutable value, messages flow up. Sources come in from outside: nothing here knows
files or clusters, and the command line imports nothing from here before a person asks for the UI.
"""
