"""The options of `set`, which `fix --apply` makes of a fix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from kubectl_qos.cli.options import ApplyOptions, SourceOptions
from kubectl_qos.errors import UsageError

if TYPE_CHECKING:
    from kubectl_qos.edit.preview import StrategyKind

KUSTOMIZE: Final = "kustomize"
"""The format of -o that prints a patch file for Kustomize."""


@dataclass(frozen=True, slots=True)
class Options:
    """What to change, and how. `requests` and `limits` are None where the flag is not given."""

    source: SourceOptions
    apply: ApplyOptions
    target: tuple[str, ...]
    requests: tuple[str, ...] | None = None
    limits: tuple[str, ...] | None = None
    containers: tuple[str, ...] = ()
    pod_level: bool = False
    target_class: str | None = None
    outlive: str | None = None
    rank_below: int | None = None
    by: Literal["in-place", "template"] | None = None
    output: str | None = None
    exit_code: bool = False
    write: str | None = None
    into: Literal["base", "overlay"] | None = None

    @property
    def writes(self) -> bool:
        """Whether a file is changed."""
        return self.write is not None

    @property
    def tree(self) -> str | None:
        """The working tree in which the source is changed, if that is asked for."""
        return self.write or (self.source.kustomize if self.writes else None)

    @property
    def is_dry_write(self) -> bool:
        """Whether only the diff of what would be written is printed."""
        return self.writes and self.apply.dry_run != "none"

    @property
    def has_text_for_git(self) -> bool:
        """Whether stdout is a commit message or a diff, and nothing else."""
        return self.output is None and (self.tree is not None or self.is_dry_write)

    def check_output(self) -> None:
        """Raise UsageError where something is done beside printing a patch file."""
        if self.output == KUSTOMIZE and (self.applies or self.writes):
            raise UsageError(
                "-o kustomize only prints a patch file", hint="--write DIR --into overlay adds it"
            )

    @property
    def strategy(self) -> StrategyKind | None:
        """That of --by, None without it."""
        from kubectl_qos.edit.preview import StrategyKind

        return {"in-place": StrategyKind.IN_PLACE, "template": StrategyKind.TEMPLATE}.get(self.by or "")

    @property
    def applies(self) -> bool:
        """Whether more is done than to print, or to write to a file."""
        if self.source.has_files or self.writes:
            return False
        return (
            (self.output is None and not self.source.demo) or self.apply.yes or self.apply.dry_run == "server"
        )
