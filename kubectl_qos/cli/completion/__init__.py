"""What TAB offers: words → position in the grammar → candidates → lines in the protocol of kubectl's scripts.

Shells and kubectl start it as `kubectl-qos __complete WORDS…` and `kubectl_complete-qos WORDS…`. Not here:
what shells do with the lines (shells/), which flags there are (cli/flags.py, cli/commands/).
"""
