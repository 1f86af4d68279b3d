"""What a person has settled for every run, and what is kept from one run to the next.

Here: where those two files are, reading and checking the first, reading and writing the second. Not here:
which columns, themes, lists and actions there are (the caller says), and what any setting does.
"""
