"""What TAB offers: words → what is being completed (position) → candidates (table, values, targets) → lines.

Shells and kubectl call it through `kubectl-qos __complete WORDS…` and `kubectl_complete-qos WORDS…`
(script.py). Names come from where the words so far say (names.py). Not here: what shells do with it
(shells/), which flags there are (cli/grammar/).
"""
