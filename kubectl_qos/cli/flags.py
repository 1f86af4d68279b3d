"""Flags that commands share, in kubectl's words. options.py has the options that they are parsed to.

Not here: the flags of one command (commands/). Completion and --help import this module, so it imports
little.
"""

import argparse
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from kubectl_qos.errors import InputError, QosError, UsageError

if TYPE_CHECKING:
    from datetime import datetime

TEMPLATES: Final = ("jsonpath", "custom-columns", "jsonpath-file", "custom-columns-file")
"""kubectl's formats of -o that take a template, or a file with a template."""


def add_shared_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags that every command has; as in kubectl they come before or after its name.

    `kubectl qos options` prints them, --help only the flags of the command. They have no defaults in
    argparse, because those of the command's parser would replace values given before its name;
    `parse_options` applies the defaults.
    """
    pods = _add_group(parser, "which pods")
    # kubectl treats an empty name like a missing flag.
    pods.add_argument("-n", "--namespace", type=lambda name: name or None, metavar="NS", help="the namespace")
    add_switch(pods, "-A", "--all-namespaces", help="every namespace")
    pods.add_argument("-l", "--selector", metavar="LABELS", help="label selector such as app=web,tier!=db")
    pods.add_argument(
        "--field-selector",
        metavar="FIELDS",
        help="field selector such as status.phase=Running; --node NODE is short for spec.nodeName=NODE",
    )
    pods.add_argument("--node", metavar="NODE", help="only pods of this node")
    source = _add_group(parser, "where from")
    add_repeated(
        source,
        *("-f", "--filename"),
        dest="files",
        metavar="FILE|DIR|URL|-",
        help="manifests, or the output of kubectl get -o json|yaml, instead of a cluster",
    )
    source.add_argument(
        "-k", "--kustomize", metavar="DIR", help="a kustomization directory, built with kubectl kustomize"
    )
    add_switch(source, "-R", "--recursive", help="process the folders of -f recursively")
    add_switch(source, "--demo", help="an embedded cluster to try things out")
    _add_connection(_add_group(parser, "connection"))
    _add_facts(_add_group(parser, "facts"))
    others = _add_group(parser, "other")
    others.add_argument("-h", "--help", action="help", help="show help for the command")
    others.add_argument(
        "-v",
        "--v",
        dest="verbosity",
        type=_parse_level,
        metavar="LEVEL",
        help="log level on stderr: 4 decisions, 6 requests, 7 and 8 headers, 9 tracebacks",
    )


def _add_group(parser: argparse.ArgumentParser, title: str) -> argparse._ArgumentGroup:
    return parser.add_argument_group(title, argument_default=argparse.SUPPRESS)


def _add_connection(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--kubeconfig", metavar="FILE", help="the kubeconfig file")
    group.add_argument("--context", metavar="NAME", help="the kubeconfig context")
    group.add_argument("--cluster", metavar="NAME", help="the kubeconfig cluster")
    group.add_argument("--user", metavar="NAME", help="the kubeconfig user")
    group.add_argument("-s", "--server", metavar="URL", help="the API server")
    group.add_argument("--token", metavar="TOKEN", help="a bearer token")
    group.add_argument("--username", metavar="NAME", help="username for basic authentication")
    group.add_argument("--password", metavar="WORD", help="password for basic authentication")
    group.add_argument("--as", dest="as_user", metavar="USER", help="user to impersonate")
    group.add_argument("--as-uid", metavar="UID", help="UID to impersonate")
    add_repeated(
        group, "--as-group", dest="as_groups", metavar="GROUP", help="group to impersonate; may repeat"
    )
    extra = "extra attribute to impersonate; may repeat"
    add_repeated(group, "--as-user-extra", metavar="KEY=VALUE", help=extra)
    group.add_argument("--certificate-authority", metavar="FILE", help="the CA of the server's certificate")
    group.add_argument("--client-certificate", metavar="FILE", help="the client certificate")
    group.add_argument("--client-key", metavar="FILE", help="the key of the client certificate")
    group.add_argument("--tls-server-name", metavar="NAME", help="server name for certificate validation")
    group.add_argument(
        "--request-timeout",
        metavar="TIME",
        help="how long one request may take: 30, 5s, 1m30s; 0 means no timeout",
    )
    add_switch(group, "--insecure-skip-tls-verify", help="skip server certificate verification")
    add_switch(group, "--disable-compression", help="request uncompressed responses")
    without_effect = "accepted as in kubectl, without effect: "
    group.add_argument("--cache-dir", metavar="DIR", help=f"{without_effect}nothing is cached")
    group.add_argument("--log-flush-frequency", help=argparse.SUPPRESS)
    add_switch(group, "--match-server-version", help=f"{without_effect}version names what is supported")


def _add_facts(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--usage",
        choices=("metrics", "summary", "prometheus", "none"),
        metavar="SOURCE",
        help="metrics (the metrics API), summary (RSS and swap from the kubelets: needs get on nodes/proxy,"
        " which also allows running commands), prometheus (--stat over --over), or none",
    )
    group.add_argument(
        "--watch-for",
        dest="watch_seconds",
        type=parse_past_seconds,
        metavar="DURATION",
        help="sample the cluster for this long, every 15 seconds, and answer with the growth seen: 30s, 2m",
    )
    group.add_argument(
        "--prometheus",
        metavar="URL|NAMESPACE/SERVICE|auto",
        help="the store for --usage=prometheus and --at: Prometheus, Thanos, Mimir, VictoriaMetrics; auto"
        " looks for a service in monitoring namespaces (default: prometheus in the settings, else auto)."
        " Without --usage, current usage comes from it too, with peaks and growth",
    )
    group.add_argument(
        "--prometheus-selector",
        metavar="LABEL=VALUE,…",
        help="labels that its series must have, such as cluster=prod if it holds several clusters",
    )
    group.add_argument(
        "--over",
        dest="over_seconds",
        type=parse_past_seconds,
        metavar="DURATION",
        help="time range for peaks and growth, ending now or at --at: 7d (default), 12h",
    )
    add_choice(
        group,
        "--stat",
        ("max", "p99", "p95", "avg"),
        help="statistic over that range by which --usage=prometheus ranks (default: max)",
    )
    group.add_argument(
        "--node-memory",
        metavar="SIZE",
        help="memory of nodes of unknown capacity, such as 16Gi; --assume memory=16Gi is for all nodes",
    )
    add_repeated(
        group,
        "--assume",
        metavar="KEY=VALUE",
        help="a setting of the nodes that no API reports: ociRuntime=crun-1.22, cgroupVersion=1, …; compare"
        " --help lists the keys with type, default and effect",
    )
    add_repeated(group, "--feature-gates", metavar="GATE=BOOL,…", help="feature gates of the kubelets")


class Switch(argparse.Action):
    """A flag with an optional value after an equals sign, like pflag's `NoOptDefVal`.

    argparse has no such flags, so `--watch=false` is a separate option string, hidden from --help.
    """

    def __init__(self, option_strings: Sequence[str], dest: str, **more: Any) -> None:
        self.values: dict[str, Any] = more.pop("values")
        self.bare: str = more.pop("bare")
        with_values = [f"{name}={text}" for name in option_strings for text in self.values]
        super().__init__([*option_strings, *with_values], dest, nargs=0, **more)

    def __call__(self, _parser: Any, namespace: Any, _values: Any, option_string: str | None = None) -> None:
        """Set the value after the equals sign, or the value of the bare flag."""
        setattr(namespace, self.dest, self.values[str(option_string).partition("=")[2] or self.bare])

    def parse(self, text: str) -> str:
        """Return the value in the spelling of the option strings: `true` for `1`, `T` and so on.

        Raises UsageError, in kubectl's words, for an unknown value.
        """
        for boolean, texts in _BOOLEANS.items():
            if boolean in self.values and text in texts:
                return boolean
        if text in self.values:
            return text
        if "true" not in self.values:
            raise UsageError(f'Invalid dry-run value ({text}). Must be "none", "server", or "client".')
        names, why = ", ".join(self.option_strings), f'strconv.ParseBool: parsing "{text}": invalid syntax'
        raise UsageError(f'invalid argument "{text}" for "{names}" flag: {why}')


_BOOLEANS: Final = {
    "true": {"1", "t", "T", "TRUE", "true", "True"},
    "false": {"0", "f", "F", "FALSE", "false", "False"},
}
"""The spellings that strconv.ParseBool reads."""
_ON_OR_OFF: Final = {"true": True, "false": False}


def add_switch(
    group: argparse._ActionsContainer,
    *names: str,
    values: Mapping[str, Any] = _ON_OR_OFF,
    bare: str = "true",
    default: Any = False,
    **more: Any,
) -> None:
    """Add a flag with these `values` after an equals sign, and `bare` without one.

    `default` has no effect in a group that suppresses defaults.
    """
    default = argparse.SUPPRESS if group.argument_default is argparse.SUPPRESS else default
    action = group.add_argument(*names, action=Switch, values=values, bare=bare, default=default, **more)
    action.option_strings = list(names)


def add_repeated(group: argparse._ActionsContainer, *names: str, **more: Any) -> None:
    """Add a flag that may repeat. Its value is a list, by default empty if the group has defaults."""
    default = argparse.SUPPRESS if group.argument_default is argparse.SUPPRESS else []
    group.add_argument(*names, action="append", default=default, **more)


def add_choice(group: argparse._ActionsContainer, name: str, choices: Sequence[str], **more: Any) -> None:
    """Add a flag that takes one of these words."""
    group.add_argument(name, choices=choices, metavar="|".join(choices), **more)


def add_dry_run(group: argparse._ActionsContainer, help_: str) -> None:
    """Add --dry-run with kubectl's values; the bare flag means `client`."""
    values = {text: text for text in ("none", "client", "server")}
    add_switch(group, "--dry-run", values=values, bare="client", default="none", help=help_)


def add_readonly(
    parser: argparse._ActionsContainer,
    help_: str = "start the terminal UI without any way to change the cluster",
) -> None:
    """Add --readonly, which may also come before the command's name."""
    add_switch(parser, "--readonly", default=argparse.SUPPRESS, help=help_)


def add_bundle(parser: argparse.ArgumentParser) -> None:
    """Add --bundle and --anonymize."""
    parser.add_argument(
        "--bundle",
        type=_parse_bundle,
        metavar="FILE.tar.gz",
        help=(
            "also write the data behind the answer to FILE.tar.gz, redacted; with -f FILE.tar.gz every"
            " read-only command then gives the same answers as now"
        ),
    )
    add_switch(parser, "--anonymize", help="replace names in the bundle, each name always by the same word")


def _parse_bundle(path: str) -> str:
    if not path.endswith(".tar.gz"):
        raise UsageError(f"--bundle {path!r}: the name of a bundle ends in .tar.gz")
    return path


def add_target(parser: argparse.ArgumentParser, help_: str, nargs: str = "*") -> None:
    """Add the TYPE/NAME operand: pods, workloads and nodes."""
    parser.add_argument("target", nargs=nargs, metavar="TYPE/NAME", help=help_)


class Formats(tuple[str, ...]):
    """The formats of -o; with JSON also templates, such as `jsonpath={.items[*].pod}`."""

    __slots__ = ()

    def __contains__(self, text: object) -> bool:
        return super().__contains__(text) or (
            super().__contains__("json") and str(text).partition("=")[0] in TEMPLATES
        )

    @property
    def names(self) -> str:
        """Return all formats for a sentence."""
        return ", ".join((*self, *(f"{name}=…" for name in TEMPLATES if "json" in self)))


def add_output(
    parser: argparse._ActionsContainer, *formats: str, help_: str = "output format", has_names: bool = True
) -> None:
    """Add -o with these formats, and --template if JSON is among them; with `has_names` also -o name."""
    has_values = "json" in formats
    formats = (*formats, "name") if has_values and has_names and "name" not in formats else formats
    metavar = "|".join((*formats, *(f"{name}=…" for name in TEMPLATES[:2] if has_values)))
    parser.add_argument("-o", "--output", choices=Formats(formats), metavar=metavar, help=help_)
    if has_values:
        parser.add_argument(
            "--template",
            metavar="TEMPLATE",
            help="the template for -o jsonpath or custom-columns, if -o does not have it",
        )


def add_no_headers(parser: argparse.ArgumentParser) -> None:
    """Add --no-headers."""
    off_or_on = {"true": False, "false": True}
    add_switch(parser, "--no-headers", dest="headers", values=off_or_on, default=True, help="no header line")


def add_apply_flags(parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    """Add the flags of commands that change a cluster, and return the group for further flags."""
    group = parser.add_argument_group("how it is applied to a cluster")
    add_dry_run(
        group,
        "client: preview only, nothing is sent; server: a dry run of the server, nothing is changed; none"
        " (default)",
    )
    add_switch(group, "-y", "--yes", help="do not ask for confirmation; required without a terminal")
    add_switch(
        group,
        "--force",
        help=(
            "with --yes: apply even if the kubelet is expected to answer Infeasible, Deferred or Error, or if"
            " the rollout is expected to stall"
        ),
    )
    add_readonly(group, "refuse to change the cluster")
    add_switch(group, "--wait", help="watch the change until it has settled (default)", default=None)
    group.add_argument(
        "--timeout",
        dest="timeout_seconds",
        type=_parse_seconds,
        metavar="TIME",
        help="how long to watch it: 30s, 5m; 0 = wait forever; a timeout does not revert the change",
    )
    return group


def add_trial_flags(group: argparse._ArgumentGroup) -> None:
    """Add the flags that put a change on trial."""
    group.add_argument(
        "--for",
        dest="for_seconds",
        type=_parse_seconds,
        metavar="TIME",
        help="watch the applied change for TIME (10m): restarts, OOM kills, memory against the new values;"
        " exit code 4 if it did not hold",
    )
    group.add_argument(
        "--undo-if",
        type=_parse_conditions,
        default=(),
        metavar="restarts,oom,infeasible",
        help="with --for: revert the change once one of these is seen, as undo does; exit code 3 if reverted,"
        " 4 if not (someone else may have changed the values since)",
    )


def add_write_flags(group: argparse._ActionsContainer) -> None:
    """Add --write and --into."""
    group.add_argument(
        "--write",
        nargs="?",
        const="",
        metavar="DIR",
        help="edit the manifest or Kustomize patch of the object in this working tree (without DIR the file"
        " of -f) and print a commit message. Only values change; comments and layout stay. The preview goes"
        " to stderr; --dry-run prints the diff and writes nothing",
    )
    add_choice(
        group,
        "--into",
        ("base", "overlay"),
        help="with --write DIR: edit the base, which other overlays may share, or only the object's own"
        " overlay (default: where the value is set; refused if other overlays would change)",
    )


def add_contexts(parser: argparse.ArgumentParser) -> None:
    """Add --contexts and --all-contexts."""
    help_ = "query several clusters: contexts of the kubeconfig, or patterns such as 'prod-*'"
    add_repeated(parser, "--contexts", metavar="NAME,…", help=help_)
    add_switch(parser, "--all-contexts", help="every cluster of the kubeconfig")


def add_at(parser: argparse.ArgumentParser) -> None:
    """Add --at, which may also come before the command's name."""
    parser.add_argument(
        "--at",
        default=argparse.SUPPRESS,
        metavar="TIME",
        help="show the cluster at a past time, rebuilt from Prometheus: 2h (ago), 2026-11-20T14:59:00Z",
    )


def whole_number(meaning: str, least: int, most: int | None = None) -> Callable[[str], int]:
    """Return a parser of whole numbers in these bounds; its ArgumentTypeErrors state the `meaning`."""

    def parse(text: str) -> int:
        number = int(text) if text.isascii() and text.isdecimal() else -1
        if number < least or (most is not None and number > most):
            raise argparse.ArgumentTypeError(f"{text!r} is not {meaning}")
        return number

    return parse


def parse_past_seconds(text: str) -> int:
    """Return the seconds of a duration such as 30m, 2h, 1d12h. Raises ArgumentTypeError."""
    from kubectl_qos.k8s.quantity import parse_duration

    try:
        seconds = parse_duration(text, days=True) // 10**9
    except InputError:
        seconds = -1
    if seconds <= 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a duration: write 30m, 2h, 1d12h")
    return seconds


def parse_since(text: str) -> "int | datetime":
    """Return the seconds of a duration, or a time such as 2026-11-20T14:59:00Z. Raises ArgumentTypeError."""
    from kubectl_qos.k8s.quantity import parse_time

    moment = parse_time(text)
    if moment is not None:
        return moment
    try:
        return parse_past_seconds(text)
    except argparse.ArgumentTypeError:
        problem = f"{text!r} is neither a duration (30m, 1d12h) nor a time (RFC 3339)"
        raise argparse.ArgumentTypeError(problem) from None


def given_shared_flags(namespace: argparse.Namespace) -> tuple[str, ...]:
    """Return the given shared flags as words that parse to the same options."""
    parser = argparse.ArgumentParser(add_help=False)
    add_shared_flags(parser)
    words: dict[str, list[str]] = {}
    for action in parser._actions:  # noqa: SLF001 - argparse has no public way to list flags
        if action.dest not in namespace:
            continue
        value, flag = vars(namespace)[action.dest], action.option_strings[-1]
        if isinstance(action, Switch):
            text = next(text for text, other in action.values.items() if other == value)
            words[action.dest] = [flag if text == action.bare else f"{flag}={text}"]
            continue
        if action.type is parse_past_seconds:
            value = f"{value}s"
        words[action.dest] = [f"{flag}={item}" for item in (value if isinstance(value, list) else [value])]
    return tuple(word for flags in words.values() for word in flags)


def _parse_seconds(text: str) -> float:
    from kubectl_qos.transport.net_errors import parse_timeout

    try:
        return parse_timeout(text) or 0
    except QosError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _parse_conditions(text: str) -> tuple[str, ...]:
    from kubectl_qos.edit.status import TrialCondition

    conditions = tuple(text.split(","))
    if not set(conditions) <= {condition.value for condition in TrialCondition}:
        raise argparse.ArgumentTypeError(f"{text!r} is not a list of {', '.join(TrialCondition)}")
    return conditions


def _parse_level(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= 9):
        why = f'strconv.ParseInt: parsing "{text}": invalid syntax'
        raise UsageError(
            f'invalid argument "{text}" for "-v, --v" flag: {why}',
            hint="write a number such as 6, or 0 for silence",
        )
    return int(text)
