"""Which values complete which flag or operand: a line for each, under the name that commands read it by.

Flags and operands with choices need none. A test compares these lines with the grammars.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kubectl_qos.cli.complete import values
from kubectl_qos.cli.complete.offer import FILES, FOLDERS
from kubectl_qos.cli.complete.targets import EVERY_TYPE, NODE, POD, WORKLOADS, Targets
from kubectl_qos.cli.complete.values import Completer, free

EVERY_COMMAND: Final[Mapping[str, Completer]] = {
    "namespace": values.of_kind("Namespace"),
    "node": values.of_kind("Node"),
    "selector": values.labels,
    "filename": values.files_ending_in("yaml", "yml", "json"),
    "kubeconfig": values.only(FILES),
    "context": values.in_kubeconfig("contexts"),
    "cluster": values.in_kubeconfig("clusters"),
    "user": values.in_kubeconfig("users"),
    "server": free,
    "token": free,
    "username": free,
    "password": free,
    "as_user": free,
    "as_uid": free,
    "as_groups": free,
    "certificate_authority": values.only(FILES),
    "client_certificate": values.only(FILES),
    "client_key": values.only(FILES),
    "tls_server_name": free,
    "request_timeout": free,
    "node_memory": free,
    "assume": values.settings,
    "feature_gates": values.gates,
    "verbosity": free,
}

OF_COMMAND: Final[Mapping[str, Mapping[str, Completer]]] = {
    "top": {
        "names": Targets(POD, NODE, bare=True, most=None),
        "sort_by": values.columns,
    },
    "explain": {"target": Targets(POD, *WORKLOADS, most=None)},
    "tree": {"target": Targets(*EVERY_TYPE)},
    "compare": {
        "target": Targets(*EVERY_TYPE),
        "to": values.releases,
        "settings": values.settings,
    },
    "edit": {"target": Targets(POD, *WORKLOADS)},
    "set": {
        "target": Targets(POD, *WORKLOADS),
        "requests": values.resources,
        "limits": values.resources,
        "containers": values.containers,
        "outlive": values.of_kind("Pod"),
        "rank_below": free,
        "timeout": free,
    },
    "undo": {"id": values.changes, "timeout": free},
    "kills": {
        "target": Targets(*EVERY_TYPE, bare=True, most=None),
        "kernel_logs": values.only(FILES),
        "since": free,
    },
    "simulate": {
        "target": Targets(NODE),
        "free": free,
        "grow": values.growth,
        "important": values.labels,
        "what_if": values.files_ending_in("yaml", "yml", "json"),
    },
    "verify": {
        "target": Targets(POD, NODE),
        "proc_root": values.only(FOLDERS),
        "cgroup_root": values.only(FOLDERS),
        "dump": values.files_ending_in("json"),
    },
    "host": {
        "proc_root": values.only(FOLDERS),
        "cgroup_root": values.only(FOLDERS),
        "from_dump": values.files_ending_in("json"),
    },
    "web": {"port": free, "address": free, "allow_hosts": free},
}


def completer(command: str, name: str) -> Completer:
    """What completes a flag or operand of a command. Raises KeyError where this table lacks it."""
    return OF_COMMAND.get(command, {}).get(name) or EVERY_COMMAND[name]
