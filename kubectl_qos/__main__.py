"""Parse the command line and import the shell that is needed, and only that."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code of the command line; without a command, of the terminal UI."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words[:1] == ["__complete"]:
        from kubectl_qos.cli.completion.script import answer

        return answer(words[1:])
    from kubectl_qos.cli.run import exit_code_for, run

    def act() -> int:
        from kubectl_qos.cli.logging import logging_to
        from kubectl_qos.cli.parser import parse

        options = parse(words)
        if options.command is None and not sys.stdout.isatty():
            options.command = "top"
        opens_ui = options.command in {None, "edit"} and not getattr(options, "version", False)
        with logging_to(options, on_screen=opens_ui):
            return _open_ui(options) if opens_ui else run(options)

    return exit_code_for(act)


def _open_ui(options: argparse.Namespace) -> int:
    """The terminal UI on what the flags name; for `edit`, on the edit screen of its target."""
    from dataclasses import replace
    from functools import partial

    from kubectl_qos.cli.sources import in_context, list_contexts, resolve_source
    from kubectl_qos.cli.targets import find_pod, parse_targets
    from kubectl_qos.errors import UsageError

    targets = parse_targets(getattr(options, "target", []))
    if len(targets) > 1:
        raise UsageError("one pod or workload can be edited at a time")
    if targets and not sys.stdout.isatty():
        raise UsageError(
            "edit opens the terminal UI, and standard output is no terminal",
            hint="kubectl qos explain says how a pod stands",
        )
    from kubectl_qos.tui.app import ContextSwitch
    from kubectl_qos.tui.start import settings, start

    options.settings = said = settings()
    options.refresh_seconds = said.refresh_seconds
    wanted = resolve_source(options)
    scope = wanted.scope
    if not targets and getattr(options, "namespace", None) is None:
        # The UI is there to browse: the context's own namespace restricts commands only.
        scope = replace(scope, namespace=None)
        if scope.node is None and not getattr(options, "all_namespaces", False):
            scope = replace(scope, namespace=said.scope.namespace, node=said.scope.node)
    find = (lambda snapshot: find_pod(targets[0], snapshot, wanted)) if targets else None
    return start(
        wanted.source,
        scope,
        said,
        find=find,
        notes=wanted.problems,
        readonly=getattr(options, "readonly", False),
        contexts=ContextSwitch(partial(list_contexts, options), partial(in_context, options)),
    )


if __name__ == "__main__":
    sys.exit(main())
