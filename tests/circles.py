"""Fail where files of the package import each other, also where only for types. `make imports` runs it."""

import sys
from graphlib import CycleError, TopologicalSorter

import grimp

graph = grimp.build_graph("kubectl_qos", cache_dir=None)
imported = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
try:
    TopologicalSorter(imported).prepare()
except CycleError as error:
    sys.exit(f"files import each other: {' <- '.join(error.args[1])}")
