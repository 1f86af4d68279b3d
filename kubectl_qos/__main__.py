"""Parse the command line, then import only the command or the terminal UI."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kubectl_qos.cli.commands.edit import Options as EditOptions
    from kubectl_qos.cli.options import SourceOptions
    from kubectl_qos.cluster.source import Source


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line, or the terminal UI if no command is given. Return the exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words[:1] == ["__complete"]:
        from kubectl_qos.cli.completion import answer

        return answer(words[1:])
    from kubectl_qos.cli.main import run

    return run(words, _open_ui)


def _open_ui(options: EditOptions) -> int:
    """Open the terminal UI on the source of the flags; with a target, open its edit screen."""
    from functools import cache, partial

    from kubectl_qos.cli.resources import find_pod, parse_references
    from kubectl_qos.cli.sources import Past, SourceNeeds, list_contexts, resolve_source
    from kubectl_qos.errors import UsageError

    references = parse_references(options.target, any_kind=options.source.has_files, hinted="pod")
    if len(references) > 1:
        raise UsageError("one pod or workload can be edited at a time")
    if references and not sys.stdout.isatty():
        raise UsageError(
            "edit opens the terminal UI, but standard output is not a terminal",
            hint="kubectl qos explain prints the same facts",
        )
    from kubectl_qos.tui.shell import ContextSwitch
    from kubectl_qos.tui.start import settings as read_settings
    from kubectl_qos.tui.start import start

    settings = read_settings()
    needs = SourceNeeds(
        write_settings=None if options.readonly else settings,
        progress=False,
        refresh_seconds=settings.refresh_seconds,
        living_demo=True,
    )

    def in_context(name: str | None) -> SourceOptions:
        source = options.source if name is None else options.source.in_context(name)
        return source._replace(at=None)

    @cache
    def open_past(name: str | None) -> Past:
        return Past(in_context(name))

    def open_context(name: str | None) -> Source:
        return resolve_source(in_context(name), needs._replace(has_terminal=False)).source

    resolved = resolve_source(options.source, needs)
    scope, source = resolved.scope, options.source
    if not references and source.namespace is None:
        # The UI shows all namespaces; only commands default to the context's namespace.
        scope = scope._replace(namespace=None)
        if scope.node is None and not source.all_namespaces:
            scope = scope._replace(namespace=settings.scope.namespace, node=settings.scope.node)
    return start(
        resolved.source,
        scope,
        settings,
        find=(lambda snapshot: find_pod(references[0], snapshot, resolved)) if references else None,
        notes=resolved.notes,
        readonly=options.readonly,
        keeps_history=not source.demo,
        contexts=ContextSwitch(partial(list_contexts, source), open_context, open_past),
    )


if __name__ == "__main__":
    sys.exit(main())
