"""Flags as pflag reads them: values of switches, words between flags, and what a mistyped one is answered."""

import pytest

from kubectl_qos.cli.flags import Switch
from kubectl_qos.cli.main import build_parsers, parse
from kubectl_qos.errors import UsageError

SWITCHES = [
    (command, name)
    for command, parser in build_parsers().items()
    for action in parser._actions
    if isinstance(action, Switch)
    for name in action.option_strings
]
NEEDED = {"verify": ["node/a"], "edit": ["pod/a"]}


def refused(*words: str) -> UsageError:
    with pytest.raises(UsageError) as caught:
        parse(words)
    return caught.value


def test_every_switch_takes_what_its_sign_is_followed_by() -> None:
    for command, name in SWITCHES:
        words = [command, *NEEDED.get(command, ())] if command else ["top"]
        if name == "--dry-run":
            values = [parse([*words, name + end]).dry_run for end in ("", "=none", "=server")]
            assert values == ["client", "none", "server"], command
            continue
        where = [] if name in {"--version", "--readonly"} and not command else words
        alone, true, false = (vars(parse([*where, name + end])) for end in ("", "=true", "=false"))
        assert alone == true, (command, name)
        changed = [key for key in alone if alone[key] is not false[key] and alone[key] != false[key]]
        assert changed, (command, name)


@pytest.mark.parametrize("text", ["1", "t", "T", "TRUE", "true", "True"])
def test_what_go_reads_as_true(text: str) -> None:
    assert parse(["top", f"--all-namespaces={text}"]).all_namespaces is True
    assert parse(["top", f"-A={text}"]).all_namespaces is True
    of_two = parse(["top", f"-wA={text}"])
    assert of_two.watch is of_two.all_namespaces is True


@pytest.mark.parametrize("text", ["0", "f", "F", "FALSE", "false", "False"])
def test_what_go_reads_as_false(text: str) -> None:
    assert parse(["top", "-w", f"--watch={text}"]).watch is False
    assert parse(["top", "--no-headers", f"--no-headers={text}"]).headers is True


def test_an_empty_namespace_is_none() -> None:
    assert parse(["top", "-n", ""]).namespace is None


def test_words_may_be_between_flags() -> None:
    assert parse(["top", "pods", "-A", "web", "--no-headers", "api"]).target == ["pods", "web", "api"]
    assert parse(["top", "pods", "-A", "--", "-odd"]).target == ["pods", "-odd"]
    assert parse(["verify", "node/a", "--local", "node/b"]).target == ["node/a", "node/b"]


@pytest.mark.parametrize(
    ("words", "sentence", "hint"),
    [
        ("tpo", 'unknown command "tpo" for "kubectl-qos"', "did you mean top?"),
        ("vrify", 'unknown command "vrify" for "kubectl-qos"', "did you mean verify?"),
        ("zzz", 'unknown command "zzz" for "kubectl-qos"', "see 'kubectl-qos --help'"),
        ("top --contaners", "unknown flag: --contaners", "did you mean --containers?"),
        ("set --containers a", "unknown flag: --containers", "did you mean --container?"),
        ("top --namspace=a", "unknown flag: --namspace", "did you mean --namespace?"),
        ("--namspace top", "unknown flag: --namspace", "did you mean --namespace?"),
        ("top -Z", "unknown shorthand flag: 'Z' in -Z", "see 'kubectl-qos top --help'"),
        ("top -AZ", "unknown shorthand flag: 'Z' in -Z", "see 'kubectl-qos top --help'"),
        ("top -n", "flag needs an argument: 'n' in -n", "see 'kubectl-qos top --help'"),
        (
            "kills --since -1h",
            "argument --since/--since-time: '-1h' is neither a duration (30m, 1d12h) nor a time (RFC 3339)",
            "see 'kubectl-qos kills --help'",
        ),
        ("--min-risk", "unknown flag: --min-risk", "--min-risk is a flag of top"),
        (
            "-f x.json --kernel-log node1=x.log",
            "unknown flag: --kernel-log",
            "--kernel-log is a flag of kills, report",
        ),
        ("edit pod/a --min-risk", "unknown flag: --min-risk", "--min-risk is a flag of top"),
        ("top --since", "unknown flag: --since", "--since is a flag of kills, report"),
        (
            "explain --all-contexts",
            "unknown flag: --all-contexts",
            "--all-contexts is a flag of top, next, fix, check, kills",
        ),
        ("version x", "unexpected arguments: x", "see 'kubectl-qos version --help'"),
        (
            "set pod/a --dry-run=all",
            'Invalid dry-run value (all). Must be "none", "server", or "client".',
            "",
        ),
    ],
)
def test_a_mistake_is_answered_in_kubectls_words(words: str, sentence: str, hint: str) -> None:
    error = refused(*words.split())
    assert (str(error), error.hint) == (sentence, hint)


def test_a_wrong_boolean_is_answered_in_gos_words() -> None:
    error = refused("top", "--watch=maybe")
    why = 'strconv.ParseBool: parsing "maybe": invalid syntax'
    assert str(error) == f'invalid argument "maybe" for "-w, --watch" flag: {why}'


def test_help_shows_a_switch_once() -> None:
    text = build_parsers()["top"].format_help()
    assert "--watch=" not in text


@pytest.mark.parametrize(
    ("word", "near"),
    [
        ("get", "top"),
        ("describe", "explain"),
        ("explian", "explain"),
        ("po", "top po"),
        ("nodes", "top nodes"),
        ("ns", "top ns"),
        ("deployments", "top workloads"),
        ("po/web", "explain po/web"),
        ("no/worker-1", "next no/worker-1"),
    ],
)
def test_a_mistyped_command_is_answered_with_the_nearest(word: str, near: str) -> None:
    assert refused(word, "pods").hint == f"did you mean {near}?"


def test_an_unknown_format_is_answered_with_all_that_there_are() -> None:
    all_formats = "jsonpath=…, custom-columns=…, jsonpath-file=…, custom-columns-file=…"
    assert str(refused("version", "-o", "xml")) == (
        f"argument -o/--output: invalid choice: 'xml' (choose from json, yaml, {all_formats})"
    )
    assert "invalid choice: 'name'" in str(refused("report", "-o", "name")), "a report lists no objects"
    assert str(refused("host", "-o", "xml")).count("jsonpath=") == 1
    assert parse(["top", "-o", "jsonpath={.items}"]).output == "jsonpath={.items}"
