"""Flags that commands share, with kubectl's words for them. What they become is in options.py.

Not here: the flags of one command (commands/). Completion and --help import this room, so it imports little.
"""

import argparse
from collections.abc import Mapping, Sequence
from typing import Any, Final

from kubectl_qos.errors import InputError, QosError, UsageError

TEMPLATES: Final = ("jsonpath", "custom-columns", "jsonpath-file", "custom-columns-file")
"""Formats of -o that take a template or a file with one, as of kubectl."""


def add_shared_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags that every command has, before or after its name, as kubectl takes them.

    `kubectl qos options` prints them, --help the flags of the command alone. argparse itself has no defaults
    for them: those of the command's parser would replace what was read before its name. `parse_options`
    leaves them to the fields.
    """
    pods = _add_group(parser, "which pods")
    pods.add_argument("-n", "--namespace", metavar="NS", help="the namespace")
    add_switch(pods, "-A", "--all-namespaces", help="every namespace")
    pods.add_argument("-l", "--selector", metavar="LABELS", help="label selector such as app=web,tier!=db")
    pods.add_argument(
        "--field-selector",
        metavar="FIELDS",
        help="field selector such as status.phase=Running; --node is that of spec.nodeName",
    )
    pods.add_argument("--node", metavar="NODE", help="only pods of this node")
    source = _add_group(parser, "where from")
    source.add_argument(
        "-f",
        "--filename",
        dest="files",
        action="append",
        metavar="FILE|DIR|URL|-",
        help="manifests, or the output of kubectl get -o json|yaml, instead of a cluster",
    )
    source.add_argument("-k", "--kustomize", metavar="DIR", help="what kubectl kustomize builds of DIR")
    add_switch(source, "-R", "--recursive", help="folders below a -f folder too")
    add_switch(source, "--demo", help="an embedded cluster, to look around")
    _add_connection(_add_group(parser, "connection"))
    _add_facts(_add_group(parser, "facts"))
    others = _add_group(parser, "other")
    others.add_argument("-h", "--help", action="help", help="what the command does, with its own flags")
    others.add_argument(
        "-v",
        "--v",
        dest="verbosity",
        type=_parse_level,
        metavar="LEVEL",
        help="log verbosity on stderr: 4 decisions, 6 requests, 7 and 8 their headers, 9 tracebacks too",
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
    group.add_argument("--username", metavar="NAME", help="the name for basic authentication")
    group.add_argument("--password", metavar="WORD", help="the password for basic authentication")
    group.add_argument("--as", dest="as_user", metavar="USER", help="act as this user")
    group.add_argument("--as-uid", metavar="UID", help="act as a user with this UID")
    group.add_argument(
        "--as-group", dest="as_groups", action="append", metavar="GROUP", help="act in this group; may repeat"
    )
    group.add_argument(
        "--as-user-extra", action="append", metavar="KEY=VALUE", help="act with this extra; may repeat"
    )
    group.add_argument("--certificate-authority", metavar="FILE", help="the CA of the server's certificate")
    group.add_argument("--client-certificate", metavar="FILE", help="the client certificate")
    group.add_argument("--client-key", metavar="FILE", help="the key of the client certificate")
    group.add_argument("--tls-server-name", metavar="NAME", help="the name in the server's certificate")
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
        " a right that allows far more than reading), prometheus (--stat of a time, --over), or none",
    )
    group.add_argument(
        "--prometheus",
        metavar="URL|NAMESPACE/SERVICE|auto",
        help="the store for --usage=prometheus and --at: Prometheus, Thanos, Mimir, VictoriaMetrics; auto"
        " looks for a service in namespaces of monitoring (default: prometheus in the settings, else auto)."
        " Given alone, usage is that of its present, with peaks and growth",
    )
    group.add_argument(
        "--prometheus-selector",
        metavar="LABEL=VALUE,…",
        help="labels that its series must have, such as cluster=prod where it has several clusters",
    )
    group.add_argument(
        "--over",
        dest="over_seconds",
        type=parse_past_seconds,
        metavar="DURATION",
        help="the time before now, or before --at, of peaks and growth: 7d (default), 12h",
    )
    group.add_argument(
        "--stat",
        choices=("max", "p99", "p95", "avg"),
        metavar="max|p99|p95|avg",
        help="the statistic of that time that --usage=prometheus ranks by; max by default",
    )
    group.add_argument(
        "--node-memory", metavar="SIZE", help="memory of nodes whose capacity is not known, such as 16Gi"
    )
    group.add_argument(
        "--assume",
        action="append",
        metavar="KEY=VALUE",
        help="a setting of the nodes that no API reports: ociRuntime=crun-1.22, cgroupVersion=1, …; compare"
        " --help lists the keys with type, default and effect",
    )
    group.add_argument(
        "--feature-gates", action="append", metavar="GATE=BOOL,…", help="feature gates of the kubelets"
    )


class Switch(argparse.Action):
    """A flag whose value may be left out, and else stands behind an equals sign, as pflag's `NoOptDefVal`.

    argparse knows no such flags, so `--watch=false` is an option string of its own, which --help leaves out.
    """

    def __init__(self, option_strings: Sequence[str], dest: str, **more: Any) -> None:
        self.values: dict[str, Any] = more.pop("values")
        self.bare: str = more.pop("bare")
        with_values = [f"{name}={text}" for name in option_strings for text in self.values]
        super().__init__([*option_strings, *with_values], dest, nargs=0, **more)

    def __call__(self, _parser: Any, namespace: Any, _values: Any, option_string: str | None = None) -> None:
        """Set the value that is written, or that of the flag alone."""
        setattr(namespace, self.dest, self.values[str(option_string).partition("=")[2] or self.bare])

    def parse(self, text: str) -> str:
        """A value as the option strings have it: `true` for all that Go reads so.

        Raises UsageError, in kubectl's words, for what is no value.
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
"""What strconv.ParseBool reads."""
_ON_OR_OFF: Final = {"true": True, "false": False}


def add_switch(
    group: argparse._ActionsContainer,
    *names: str,
    values: Mapping[str, Any] = _ON_OR_OFF,
    bare: str = "true",
    default: Any = False,
    **more: Any,
) -> None:
    """Add a flag with these `values` behind its sign, and `bare` without it.

    `default` has no effect in a group that suppresses defaults.
    """
    default = argparse.SUPPRESS if group.argument_default is argparse.SUPPRESS else default
    action = group.add_argument(*names, action=Switch, values=values, bare=bare, default=default, **more)
    action.option_strings = list(names)


def add_dry_run(group: argparse._ActionsContainer, help_: str) -> None:
    """Add --dry-run with kubectl's values; without one it is `client`."""
    values = {text: text for text in ("none", "client", "server")}
    add_switch(group, "--dry-run", values=values, bare="client", default="none", help=help_)


def add_readonly(
    parser: argparse._ActionsContainer,
    help_: str = "start the terminal UI without any way to change the cluster",
) -> None:
    """Add --readonly; it may stand before the command's name, as shared flags may."""
    add_switch(parser, "--readonly", default=argparse.SUPPRESS, help=help_)


def add_bundle(parser: argparse.ArgumentParser) -> None:
    """Add --bundle and --anonymize."""
    parser.add_argument(
        "--bundle",
        type=_parse_bundle,
        metavar="FILE.tar.gz",
        help="also write all that the answers come from to FILE.tar.gz, redacted: every command that reads"
        " answers the same with -f FILE.tar.gz, as of now",
    )
    add_switch(parser, "--anonymize", help="replace the words of names in the bundle, each by the same one")


def _parse_bundle(path: str) -> str:
    if not path.endswith(".tar.gz"):
        raise UsageError(f"--bundle {path!r}: the name of a bundle ends in .tar.gz")
    return path


def add_target(parser: argparse.ArgumentParser, help_: str, nargs: str = "*") -> None:
    """Add what a command is about: pods, workloads and nodes."""
    parser.add_argument("target", nargs=nargs, metavar="TYPE/NAME", help=help_)


class Formats(tuple[str, ...]):
    """The formats of -o; where there is JSON also templates, such as `jsonpath={.items[*].pod}`."""

    __slots__ = ()

    def __contains__(self, text: object) -> bool:
        return super().__contains__(text) or (
            super().__contains__("json") and str(text).partition("=")[0] in TEMPLATES
        )

    @property
    def names(self) -> str:
        """All of them for a sentence."""
        return ", ".join((*self, *(f"{name}=…" for name in TEMPLATES if "json" in self)))


def add_output(parser: argparse._ActionsContainer, *formats: str, help_: str = "output format") -> None:
    """Add -o with these formats, and --template where there is JSON."""
    has_values = "json" in formats
    formats = (*formats, "name") if has_values and "name" not in formats else formats
    metavar = "|".join((*formats, *(f"{name}=…" for name in TEMPLATES[:2] if has_values)))
    parser.add_argument("-o", "--output", choices=Formats(formats), metavar=metavar, help=help_)
    if has_values:
        parser.add_argument(
            "--template",
            metavar="TEMPLATE",
            help="the template, where -o jsonpath or custom-columns has none",
        )


def add_no_headers(parser: argparse.ArgumentParser) -> None:
    """Add --no-headers, of commands that print a table."""
    off_or_on = {"true": False, "false": True}
    add_switch(parser, "--no-headers", dest="headers", values=off_or_on, default=True, help="no header line")


def add_apply_flags(parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    """Add the flags of the commands that change a cluster; returns the group, for flags of one of them."""
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
        help="with --yes: apply also what the kubelet is expected to answer Infeasible, Deferred or Error",
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
    """Add the flags with which a change is looked after once it is applied."""
    group.add_argument(
        "--for",
        dest="for_seconds",
        type=_parse_seconds,
        metavar="TIME",
        help="how long to look after it once it is applied, 10m: restarts, OOM kills, and memory against the"
        " new values; exit code 4 where it did not hold",
    )
    group.add_argument(
        "--undo-if",
        type=_parse_conditions,
        default=(),
        metavar="restarts,oom,infeasible",
        help="with --for: revert it once that is seen, as undo does; exit code 3, or 4 where that is not"
        " done, as where someone else has changed the values since",
    )


def add_write_flags(group: argparse._ActionsContainer) -> None:
    """Add --write and --into."""
    group.add_argument(
        "--write",
        nargs="?",
        const="",
        metavar="DIR",
        help="change the object's source in this working tree, a manifest or a Kustomize patch, and print a"
        " commit message; without DIR the file of -f. Only its values change, comments and layout stay. The"
        " preview goes to stderr; with --dry-run the diff is printed, and nothing is written",
    )
    group.add_argument(
        "--into",
        choices=("base", "overlay"),
        metavar="base|overlay",
        help="with --write DIR: base changes a manifest or patch that other overlays share, overlay only what"
        " the object's own lists (default: where the value is set, refused if other overlays would change)",
    )


def add_contexts(parser: argparse.ArgumentParser) -> None:
    """Add --contexts and --all-contexts, of commands that can ask several clusters."""
    parser.add_argument(
        "--contexts",
        action="append",
        default=[],
        metavar="NAME,…",
        help="several clusters side by side: contexts of the kubeconfig, also as patterns such as 'prod-*'",
    )
    add_switch(parser, "--all-contexts", help="every cluster of the kubeconfig")


def add_at(parser: argparse.ArgumentParser) -> None:
    """Add --at, of the terminal UI and of commands that can look at the past; also before their name."""
    parser.add_argument(
        "--at",
        default=argparse.SUPPRESS,
        metavar="TIME",
        help="the cluster as it was, rebuilt from Prometheus: 2h (ago), 2026-11-20T14:59:00Z",
    )


def parse_past_seconds(text: str) -> int:
    """The seconds of a duration such as 30m, 2h, 1d12h. Raises ArgumentTypeError."""
    from kubectl_qos.k8s.quantity import parse_duration

    try:
        seconds = parse_duration(text, days=True) // 10**9
    except InputError:
        seconds = -1
    if seconds <= 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a duration: write 30m, 2h, 1d12h")
    return seconds


def given_shared_flags(namespace: argparse.Namespace) -> tuple[str, ...]:
    """The shared flags of a command line, a word each: parsed again, they mean the same."""
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
    from kubectl_qos.edit.status import Condition

    conditions = tuple(text.split(","))
    if not set(conditions) <= {condition.value for condition in Condition}:
        raise argparse.ArgumentTypeError(f"{text!r}: write {', '.join(Condition)}, with commas between them")
    return conditions


def _parse_level(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= 9):
        why = f'strconv.ParseInt: parsing "{text}": invalid syntax'
        raise UsageError(
            f'invalid argument "{text}" for "-v, --v" flag: {why}',
            hint="write a number such as 6, or 0 for silence",
        )
    return int(text)
