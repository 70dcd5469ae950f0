# SPDX-License-Identifier: Apache-2.0
"""Mistakes that new users make with sessions. Each gets one line that says what is wrong and where, and a cure."""

from __future__ import annotations

import fcntl
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from lib.sandbox import Holt, Result
from lib.sessions import Session, Sessions

Put = Callable[..., Path]

LISTED = "PATH is relative to the workspace, as a command inside sees it. To list the files: holt files w ls"
HOME = 'holt does not expand "~". The home directory inside is /home/agent: write that path.'
YOURS = "This is a path on the host, relative to your working directory. For a path in a session, write NAME:PATH with holt cp."

LINES = (
    # operands
    ("create", "holt create: missing NAME", "holt create NAME [OPTIONS]"),
    ("create a b", 'holt create: unexpected operand "b"', "Run it afterwards: holt exec NAME -- COMMAND"),
    ("forward 8000 w", 'holt forward: "w" is not a port', "The session comes first: holt forward w 8000"),
    ("ls x", 'holt ls: unexpected operand "x"', "holt ls [--json]"),
    ("show", "holt show: missing NAME", "holt show NAME [--json]"),
    ("show w x", 'holt show: unexpected operand "x"', "holt show w [--json]"),
    ("sh", "holt sh: missing NAME", "holt sh NAME"),
    ("sh w x", 'holt sh: unexpected operand "x"', "holt sh w"),
    ("exec", "holt exec: missing NAME", "holt exec NAME [OPTIONS] -- COMMAND [ARG...]"),
    ("exec -- ls -l", "holt exec: missing NAME", "holt exec NAME [OPTIONS] -- COMMAND [ARG...]"),
    ("exec --detach -- ls", "holt exec: missing NAME", "holt exec NAME [OPTIONS] -- COMMAND [ARG...]"),
    ("exec w", "holt exec: missing COMMAND", "holt exec w [OPTIONS] -- COMMAND [ARG...]"),
    ("exec --detach w", "holt exec: missing COMMAND", "holt exec w [OPTIONS] -- COMMAND [ARG...]"),
    ("logs w", "holt logs: missing ID", "holt logs w ID"),
    ("kill w", "holt kill: missing ID", "To end everything that runs in the session: holt stop w"),
    ("stop", "holt stop: missing NAME", "holt stop NAME..."),
    ("tier w", "holt tier: missing standard|medium|large|xlarge", "holt tier w standard|medium|large|xlarge"),
    ("python w f x", 'holt python: unexpected operand "x"', "holt python w [OPTIONS]"),
    ("cp", "holt cp: missing SOURCE and DESTINATION", "holt cp FILE... NAME:PATH"),
    ("cp w:f", "holt cp: missing DESTINATION", "holt cp FILE... NAME:PATH"),
    ("cp - w:", "input from stdin has no file name", "Name the new file: holt cp - NAME:PATH"),
    ("cp - w:dir", "input from stdin has no file name", "Name the new file: holt cp - NAME:PATH"),
    ("files w put -", "input from stdin has no file name", "Name the new file: holt files w put - PATH"),
    ("files w put - dir", "input from stdin has no file name", "Name the new file: holt files w put - PATH"),
    ("cp w:dir .", "cannot read dir", "Copy directories with holt cp -r."),
    ("cp a:b w:", "holt cp: copy either from the host to one session, or from one session to the host", "If you mean the file of that name, write ./a:b"),
    ("cp a:b x", 'session "a" does not exist', "If you mean the file of that name, write ./a:b"),
    ("cp a:c x", 'session "a" does not exist', "holt ls lists the sessions."),
    ("cp -r mine w:none/x", "cannot make the directory none/", "holt files w mkdir --parents DIRECTORY"),
    ("cp f w:a g", "none of the operands names a session (NAME:PATH)", "holt cp FILE... NAME:PATH"),
    # verbs and operands
    ("kv", "holt kv: missing NAME", "holt kv NAME get | set | delete | keys ..."),
    ("kv w", "holt kv: missing VERB", "holt kv w get | set | delete | keys ..."),
    ("kv w gte k", 'holt kv: unknown verb "gte"; did you mean "get"?', "holt kv w get | set | delete | keys"),
    ("kv w get", "holt kv: missing KEY", "holt kv w get KEY [--raw] [--json]"),
    ("kv w set k", "holt kv: missing VALUE", "holt kv w set KEY VALUE"),
    ("kv w set k -5", 'unknown option "-5"', 'If this is not an option, write "--" before it to end the options.'),
    ("kv w keys a b", 'holt kv: unexpected operand "b"', "holt kv w keys [PREFIX]"),
    ("files ls", "holt files: missing NAME", "holt files NAME ls | cat"),
    ("files w lss", 'holt files: unknown verb "lss"; did you mean "ls"?', "holt files w ls | cat"),
    ("files ls w", 'write the session\'s name before "ls"', "holt files w ls"),
    ("files w mv f", "holt files: missing TO", "holt files w mv FROM TO [--replace]"),
    ("files w ls a b", 'holt files: unexpected operand "b"', "holt files w ls [PATH]"),
    # files that do not exist
    ("files w cat none", "cannot read none", LISTED),
    ("files w get none", "cannot read none", LISTED),
    ("files w ls none", "cannot list none", LISTED),
    ("files w mv none x", "cannot move none", LISTED),
    ("files w rm none", "cannot remove none", LISTED),
    ("cp w:none .", "cannot read none", LISTED),
    ("files w put none", 'cannot read "none"', YOURS),
    ("cp none w:", 'cannot read "none"', YOURS),
    ("cp w:file none/f", 'cannot write "none/f"', "The directory does not exist: make it, or correct the path."),
    ("files w mkdir dir", "cannot make the directory dir", "--parents accepts an existing directory."),
    ("files w mkdir none/x", "cannot make the directory none/x", "--parents also makes the directories above it."),
    ("files w get dir", "cannot read dir", "Copy directories with holt cp -r w:dir ."),
    ("python w none.py", 'cannot read "none.py"', "To run code directly, use -c CODE."),
    ("python w --load", "no variables were saved in /home/agent/.local/state/holt/python.pickle",
     "Save the variables first: holt python w --save"),
    ("logs w p99", 'process "p99" does not exist', "holt ps w lists the processes"),
    # a home that only a shell knows
    ("cp file w:~/x", "cannot write ~/x", HOME), ("cp w:~/x .", "cannot read ~/x", HOME),
    ("files w put file ~/x", "cannot write ~/x", HOME), ("files w cat ~/x", "cannot read ~/x", HOME),
    ("files w ls ~", "cannot list ~", HOME), ("files w mkdir ~/a", "cannot make the directory ~/a", HOME),
    ("exec w --cwd ~ -- true", 'cannot start in the directory "~"', HOME),
    ("rm xyz", 'session "xyz" does not exist', "\n  holt ls lists the sessions.\n"),
    ("show xyz", 'session "xyz" does not exist', "\n  holt ls lists the sessions.\n"),
    ("exec xyz -- true", 'session "xyz" does not exist', "To create it: holt create xyz. holt ls lists the sessions."),
    # options
    ("logs w p1 -n 5", 'unknown option "-n"; did you mean --tail?', "holt logs --help"),
    ("history w -n 5", 'unknown option "-n"; did you mean --limit?', "holt history --help"),
    ("files w ls -l", 'unknown option "-l"', 'write "--" before it to end the options'),
    ("exec w --allow-syscall unshare -- true",
     "holt exec: only holt create and holt run take --allow-syscall, because they set the policy",
     '"holt exec --help" lists the options.'),
    ("exec w --policy strict -- true",
     "holt exec: only holt create and holt run take --policy, because they set the policy",
     '"holt exec --help" lists the options.'),
    ("exec w --timeout 0 -- true", '--timeout: "0" is not a valid time', '"none", for only the policy\'s limit'),
    ("exec w --timeout 100us -- true", '--timeout: "100us" is not a valid time', "from 1ms to 1000d"),
    ("python w --timeout 0 -c 1", '--timeout: "0" is not a valid time', '"none", for only the policy\'s limit'),
    ("exec w --shell x -- true", "holt exec: COMMAND and --shell exclude each other", "Put the whole line into --shell"),
    ("exec w --cwd none/x -- true", 'cannot start in the directory "none/x"', "Name a directory that exists inside"),
    ("exec w --cwd file -- true", 'cannot start in the directory "file"', "Name a directory that exists inside"),
    ("audit w --kind grnt", '--kind: "grnt" must be one of denial|grant|guard|kill|limit|link|network|port|route|tool', "holt audit --help"),
    ("python w --save --load", "holt python: give exactly one of -c CODE, FILE, --variables, --interrupt, --restart, --save and --load", "-c '1 + 1'"),
    ("python w --timeout x -c 1", '--timeout: "x" is not a valid time', "Use a number with a unit from 1ms to 1000d, for example 250ms, 30s or 10m"),
)


@pytest.mark.identities("user")
def test_mistakes_say_what_to_do(sessions: Sessions, session: Session, put: Put) -> None:
    session.sh("mkdir dir; touch file").ok()
    put("file")
    put("a:b")
    put("mine/f")

    def shown(line: str) -> tuple[str, str]:
        result: Result = sessions(line.split())
        result.refusal()
        return result.err.splitlines()[0], result.err

    assert "did you mean" not in shown("files w ls -l")[0]
    wrong = {line: shown(line) for line, said, cure in LINES if said not in shown(line)[0] or cure not in shown(line)[1]}
    assert wrong == {}


@pytest.mark.identities("user")
def test_a_session_that_is_removed_too_is_not_suggested(sessions: Sessions) -> None:
    sessions.create("web2")
    assert 'Did you mean "web2"?' in sessions(["rm", "web"]).cure
    result = sessions(["rm", "web", "web2"])
    assert (result.code, result.err) == (125, 'holt: session "web" does not exist\n  holt ls lists the sessions.\n')


@pytest.mark.identities("user")
def test_a_missing_program_names_the_option_of_create(session: Session, holt: Holt) -> None:
    lacking = session.exec("nosuch")

    assert lacking.code == 127
    assert "(--ro DIR)" in lacking.cure and "fixed when it is created: holt create takes them" in lacking.cure
    assert "holt create" not in holt(["run", "--", "nosuch"]).cure


@pytest.mark.identities("user")
def test_a_program_gets_each_mistake_as_json(sessions: Sessions, session: Session, put: Put) -> None:
    """With --json there is one line on stderr, and no other text; the error is the one that people get."""
    session.sh("mkdir dir; touch file").ok()
    put("file")
    for line in (line.split() for line, _, _ in LINES):
        if "--json" not in sessions(["help", line[0]]).ok().out:
            continue
        people, program = sessions(line), sessions([line[0], "--json", *line[1:]])
        said = json.loads(program.err)

        assert (program.code, program.out, program.err.count("\n")) == (people.code, "", 1), str(program)
        assert (said["holt"], said["cause"], said["exit_code"]) == (1, "error", people.code)
        assert said["error"]["message"] == people.refusal(people.code)
        assert [cured.strip() for cured in (said["error"]["cure"] or "").splitlines()] == people.cure.splitlines()


@pytest.mark.identities("user")
@pytest.mark.parametrize("line, kind, code", (
    ("show --json none", "missing", 125), ("ps none --json", "missing", 125), ("wait w p99 --json", "no-process", 125),
    ("logs w p99 --json", "no-process", 125), ("kv w get none --json", "no-key", 125),
    ("files w stat none --json", "missing", 125), ("python none --json -c 1", "missing", 125),
    ("create w --json", "exists", 125), ("history none --json", "missing", 125), ("policy show none --json", "policy", 125),
    ("policy show --json --no-such", "usage", 125), ("policy none --json", "usage", 125), ("doctor x --json", "usage", 125),
    ("frobnicate --json", "usage", 125), ("cp w:x . --json", "missing", 125), ("sh w --json", "usage", 125),
    ("rm none --json", "missing", 125), ("stop none --json", "missing", 125), ("tier w huge --json", "usage", 125),
    ("kill w p99 --json", "no-process", 125), ("exec w --no-such --json -- x", "usage", 125),
    ("exec w --json -- /none", "not-found", 127),
))
def test_a_failure_is_json_where_it_was_asked_for(
    line: str, kind: str, code: int, sessions: Sessions, session: Session
) -> None:
    session.sh("true").ok()
    result = sessions(line.split())
    said = json.loads(result.err)

    assert (result.code, result.out, result.err.count("\n")) == (code, "", 1)
    assert (said["cause"], said["exit_code"], said["error"]["kind"]) == ("error", code, kind)
    assert said["error"]["message"]


@pytest.mark.identities("user")
def test_every_verb_of_sessions_takes_json(sessions: Sessions, session: Session) -> None:
    """A program can use --json with every verb. If several names fail, each has a line."""
    process = session.detach("sleep 1000")
    assert json.loads(session("kill", process, "--signal", "CONT", "--json").ok().out) == {}
    assert json.loads(session("kill", process, "--json").ok().out) == {"killed": True}
    for words in (["stop", "w"], ["tier", "w", "large"], ["rm", "w"]):
        assert sessions([*words, "--json"]).ok().out == ""
    for verb in ("stop", "rm"):
        result = sessions([verb, "w", "none", "--json"])

        assert (result.code, result.out) == (125, "")
        assert [json.loads(line)["error"]["kind"] for line in result.err.splitlines()] == ["missing", "missing"]


@pytest.mark.identities("user")
def test_json_behind_two_dashes_is_no_option(session: Session) -> None:
    assert session("kv", "get", "--", "--json").refusal() == 'the session has no key "--json"'
    assert session("kv", "get", "--json=x").refusal() == "--json takes no value"


@pytest.mark.identities("user")
def test_a_full_disk_is_told_as_json(session: Session) -> None:
    with Path("/dev/full").open("w") as full:
        result = session("show", "--json", stdout=full)

    assert result.code == 125
    assert json.loads(result.err)["error"]["errno"] == "ENOSPC"


@pytest.mark.identities("user")
def test_a_report_to_a_dash_is_no_file(session: Session) -> None:
    for flags in (["--report", "-"], ["--report=-"]):
        result = session.exec("touch", "ran", flags=flags)

        assert result.refusal() == '--report needs a file, not "-"'
        assert "Use --json to print the result to stderr." in result.cure
    assert session.out("ls") == ""
    assert not (session.sessions.holt.cwd / "-").exists()


def test_errors_name_hidden_and_protected_paths(sessions: Sessions, put: Put) -> None:
    """The message does not depend on the kernel's error. Paths below a hidden directory get it, too."""
    for path in ("work/.env", "work/Makefile", "work/conf/x", "work/keys/x", "work/mine"):
        put(path, "x")
    hidden, protected = "hides it (--hide)", "protects it (--protect)"
    session = sessions.create("w", "--workspace", "work", "--hide", ".env", "--hide", "keys", "--protect", "Makefile",
                              "--protect", "conf")
    wrong = {}
    for line, said in {
        "files w cat .env": hidden, "files w cat /workspace/.env": hidden, "files w cat keys/x": hidden,
        "files w put work/mine .env": hidden, "cp w:.env .": hidden, "files w rm .env": hidden,
        "cp work/mine w:Makefile": protected, "files w put work/mine ./Makefile": protected,
        "files w rm Makefile": protected, "files w put work/mine conf/x": protected, "files w mv mine conf/y": protected,
    }.items():
        result = sessions(line.split())
        # Root of a user namespace can read the empty file that hides another one.
        if sessions.holt.identity.name == "nested" and said == hidden and (result.code, result.out) == (0, ""):
            continue
        if result.code != 125 or f"The session's policy {said}" not in result.cure:
            wrong[line] = result.err
    assert wrong == {}
    assert session("files", "cat", "Makefile").ok().out == "x"
    session.sh("mkdir own; touch own/x; chmod 0 own").ok()
    assert "policy" not in session("files", "put", "work/mine", "own/y").cure


@pytest.mark.identities("user")
def test_a_command_that_kills_all_is_not_said_to_be_killed_from_outside_alone(session: Session) -> None:
    """The cause is unknown, because the command has killed its own monitor as well."""
    result = session.sh("kill -9 -1; sleep 1000")

    assert result.code == 137
    assert result.err == ("holt: the command and its monitor were killed, by a command in the session, such as kill -9 -1, or "
                          "from outside\n")


def test_an_option_of_create_that_has_no_effect_is_told(sessions: Sessions, put: Put) -> None:
    """The options work as those of holt run, also before the session's name. A path that exists, or a variable that is
    set, needs no warning."""
    put("work/there")
    flags = ["--workspace", "work", "--env", "NO_SUCH", "--env", "THERE", "--env", "LANG", "--hide", "there",
             "--hide", "none", "--allow-syscall", "swapon", "--allow-syscall", "ptrace"]
    result = sessions(["create", "a", *flags], env={"THERE": "x"}).ok()
    said = ["--env NO_SUCH: the variable is not set here, so it cannot be passed on", "--hide none: the path does not exist inside, so nothing is hidden",
            "--allow-syscall swapon: it needs a capability, and no command in a sandbox has one"]

    assert (result.out, result.err.splitlines()) == ("a\n", [f"holt: {line}" for line in said])
    assert sessions(["exec", "a", "--", "sh", "-c", "echo $THERE-$NO_SUCH-"], env={"NO_SUCH": "y"}).ok().out == "x--\n"

    result = sessions(["create", "b", "--json", *flags], env={"THERE": "x"}).ok()
    made = json.loads(result.out)
    assert (result.err, made["name"], made["warnings"]) == ("", "b", said)
    assert {**made, "warnings": None} == {**json.loads(sessions(["show", "b", "--json"]).ok().out), "warnings": None}


def test_create_warns_of_hidden_paths_in_policy_files_alone(sessions: Sessions, put: Put) -> None:
    put("policy.json", json.dumps({"holt": 1, "env": {"pass": ["NO_SUCH"]}, "filesystem": {"hide": ["no-such"]}}))

    for name, flags in (("a", []), ("b", ["--policy", "policy.json"]), ("c", ["--workspace", "."])):
        result = sessions(["create", name, *flags]).ok()
        assert result.out == f"{name}\n"
        assert ("hide[0]: no-such: the path does not exist inside" in result.err) == (name == "b"), result.err
        assert len(result.err.splitlines()) == (name == "b"), result.err
    assert json.loads(sessions(["create", "d", "--json"]).ok().out)["warnings"] == []


@pytest.mark.identities("user")
def test_a_live_session_has_its_tier(session: Session) -> None:
    session.sh("true").ok()

    assert session("tier", "large").err.splitlines()[1] == "  Stop it first: holt stop w."


def test_options_of_exec_may_come_before_the_session(sessions: Sessions, session: Session) -> None:
    result = sessions(["exec", "--env", "A=1", "w", "--env", "B=2", "--json", "--", "sh", "-c", "echo $A$B"])

    assert result.ok().out == "12\n"
    assert json.loads(result.err)["exit_code"] == 0
    assert sessions(["exec", "w", "echo", "--json"]).ok().out == "--json\n"


def test_serve_does_not_replace_a_file_by_its_socket(sessions: Sessions, place: Path) -> None:
    """A file is not mistaken for an old socket, and stays."""
    file = place / "data" / "file"
    file.write_text("mine")
    sessions.holt.identity.own(file)
    assert "EEXIST" in sessions(["serve", "--socket", file]).refusal()
    assert file.read_text() == "mine"


def test_a_full_disk_is_told_of_what_is_printed(session: Session) -> None:
    session("kv", "set", "k", "v").ok()
    with Path("/dev/full").open("w") as full:
        result = session("kv", "get", "k", stdout=full)
    assert result.code == 125
    assert "cannot write to stdout: No space left on device" in result.err


def test_a_value_that_does_not_fit_a_request(session: Session) -> None:
    """base64 makes it longer by a third."""
    for value in (b"\xff" * 800_000, b"x" * 1_048_576, b"x" * 2_000_000):
        result = session("kv", "set", "k", "-", stdin=value)
        assert "the value is too long: " in result.refusal()
        assert "A value may have nearly 1 MiB of text, or 760 KiB of other bytes." in result.err
    session("kv", "set", "k", "-", stdin=b"\xff" * (760 << 10)).ok()


@pytest.mark.slow
@pytest.mark.identities("user")
def test_a_session_that_somebody_else_has_locked(session: Session) -> None:
    """The message does not mention a keeper, and names the lock."""
    session.out("true")
    session.stop()
    with (session.directory / "lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        running = [session.start("true"), *(session.sessions.start([verb, "w"]) for verb in ("stop", "rm"))]
        results = [each.wait() for each in running]

    for result in results:
        assert result.refusal() == 'a process locks session "w" but does not answer'
        assert result.err.splitlines()[1] == f"  Find the process: fuser -v {session.directory}/lock"


@pytest.mark.identities("user")
def test_a_session_without_its_database(session: Session) -> None:
    database = session.directory / "session.db"
    database.rename(session.directory / "moved")

    for result in (session.exec("true"), session("show"), session("kv", "get", "k")):
        assert f"cannot open {database}" in result.refusal()
        assert "Restore the file from a copy" in result.err
