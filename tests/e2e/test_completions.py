# SPDX-License-Identifier: Apache-2.0
"""The shells complete exactly what this holt accepts. Bash gets its words and a cursor, as in real use. Fish is asked
by its own "complete -C". For zsh, the arguments of compadd are printed."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from lib.paths import PROJECT
from lib.sandbox import Holt
from lib.tap import Tap
from lib.tools import needs

pytestmark = pytest.mark.alike

Put = Callable[..., Path]

SCRIPT = """
source "$1"
COMP_LINE=$2 COMP_POINT=${#2}
shift 2
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
_holt
printf '%s\\n' "${COMPREPLY[@]}"
"""

# Bash breaks a line for completion like this (COMP_WORDBREAKS): "@mo" is "@" and "mo", "a=b" is "a", "=" and "b".
BREAKS = re.compile(r"[=:@]+|[^=:@\s]+")


def sessions(holt: Holt) -> dict[str, str]:
    """Returns the environment variable that gives each test sessions of its own."""
    return {"XDG_DATA_HOME": str(holt.cwd / ".data")}


def split(line: str) -> list[str]:
    return BREAKS.findall(line) + ([""] if line.endswith(" ") else [])


FISH = "source $argv[1]; complete -C $argv[2] | string replace -r '\\t.*' ''; true"

# Stands in for the functions of zsh's completion that the file calls: _arguments runs the action for the word at the
# cursor.
ZSH = r"""
_describe() { local each; for each in ${(P)2}; do print -r -- ${each%%:*}; done }
compadd() { print -rl -- ${(M)${(P)@[-1]}:#${PREFIX}*} }
_arguments() {
        local spec
        for spec in "$@"; do
                case $spec in
                "*${words[CURRENT - 1]}="* | $((CURRENT - 1)):* | '*:session:'* | '*:file:'*) ${=spec##*:}; return ;;
                esac
        done
}
words=("${@[2,-1]}") CURRENT=${#words} PREFIX=${words[-1]}
source "$1"
true
"""


@pytest.fixture
def others(holt: Holt) -> Callable[[str, str], list[str]]:
    """Returns a function that completes a line in another shell."""
    directory = PROJECT / "contrib" / "completions"

    def complete(shell: str, line: str, more: dict[str, str] | None = None) -> list[str]:
        # fish makes itself a ~/.config.
        own = {"PATH": f"{holt.binary.parent}:{os.environ['PATH']}", "HOME": str(holt.cwd), **sessions(holt), **(more or {})}
        environment = holt.identity.environment(own)
        argv = {"fish": ["fish", "--no-config", "-c", FISH, "/dev/stdin", line],
                "zsh": ["zsh", "-fc", ZSH, "zsh", "/dev/stdin", *line.split(" ")]}[shell]
        file = (directory / {"fish": "holt.fish", "zsh": "_holt"}[shell]).open()
        done = holt.identity.run(argv, cwd=holt.cwd, env=environment, stdin=file)
        assert more or (done.returncode, done.stderr) == (0, "")
        return sorted(filter(None, done.stdout.splitlines()))

    return complete


@pytest.fixture
def completed(holt: Holt) -> Callable[[str], list[str]]:
    """Returns the completions of a line by the installed file."""
    file = PROJECT / "contrib" / "completions" / "holt.bash"

    def complete(line: str, word: str = "", more: dict[str, str] | None = None) -> list[str]:
        """WORD in the line stands for one word, which may contain anything."""
        words = [part.replace("WORD", word) for part in split(line)]
        path = f"{holt.binary.parent}:{os.environ['PATH']}:{holt.cwd}/bin:{holt.cwd}/more/bin"
        done = holt.identity.run(
            ["bash", "-c", SCRIPT, "bash", "/dev/stdin", line.replace("WORD", word), *words], cwd=holt.cwd,
            env=holt.identity.environment({"PATH": path, **sessions(holt), **(more or {})}), stdin=file.open(),
        )
        assert more or done.returncode == 0, done.stderr
        return sorted(filter(None, done.stdout.splitlines()))

    return complete


@needs("bash", "fish")
@pytest.mark.identities("user")
def test_every_verb_is_completed(
    completed: Callable[[str], list[str]], others: Callable[[str, str], list[str]], holt: Holt
) -> None:
    """The verbs for a session's files and keys are completed, too. The help lists them."""
    verbs = re.findall(r"^  ([a-z]+) {2}", holt(["--help"]).ok().out.partition("Options:")[0], re.M)

    assert completed("holt ") == completed("holt help ") == sorted([*verbs, "--help", "--version"])
    assert set(verbs) <= set(others("fish", "holt "))
    for verb in ("files", "kv"):
        usage = holt([verb, "--help"]).ok().out.partition("\n\n")[0]
        below = sorted(re.findall(r"(?:NAME|\|)\s+([a-z]+)", usage))
        assert below == completed(f"holt {verb} work "), verb
        assert verb == "kv" or below == others("fish", f"holt {verb} work ")


@needs("bash", "fish", "zsh")
@pytest.mark.identities("user")
def test_every_verb_of_sessions_completes_their_names(
    completed: Callable[[str], list[str]], others: Callable[[str, str], list[str]], holt: Holt
) -> None:
    """A verb of sessions has a usage that starts with NAME. holt create is an exception, because it takes a new name."""
    holt(["create", "zz-work"], env=sessions(holt)).ok()
    verbs = re.findall(r"^  ([a-z]+) {2}", holt(["--help"]).ok().out.partition("Options:")[0], re.M)
    takes = {verb: f"Usage: holt {verb} NAME" in holt([verb, "--help"]).ok().out for verb in {*verbs} - {"create", "help", "policy"}}

    assert {"exec", "rm"} <= {verb for verb in takes if takes[verb]}
    for verb, wanted in takes.items():
        if verb not in ("cp", "run"):
            line = f"holt {verb} zz-w"
            assert (completed(line) == ["zz-work"]) is (others("fish", line) == ["zz-work"]) is wanted, verb
            assert (others("zsh", line) == ["zz-work"]) is wanted, verb


@needs("bash")
@pytest.mark.identities("user")
@pytest.mark.parametrize("line, expected", (
    ("holt policy ", ["--help", "check", "list", "routes", "schema", "show", "syscalls"]),
    ("holt help policy s", ["schema", "show", "syscalls"]),
    ("holt run --work", ["--workspace", "--workspace-mode"]),
    ("holt run --json --allow-d", ["--allow-degraded"]),
    ("holt run --policy s", ["standard", "strict"]),
    ("holt run --policy=s", ["standard", "strict"]),
    ("holt policy show --policy c", ["ci"]),
    ("holt run --policy d", ["dir"]),
    ("holt run --policy f", ["f.json"]),
    ("holt run --policy=f", ["f.json"]),
    ("holt policy show f", ["f.json"]),
    ("holt policy show s", ["standard", "strict"]),
    ("holt policy show --landlock=", ["auto", "off", "require"]),
    ("holt run --workspace-mode r", ["ro", "rw"]),
    ("holt run --network ", ["allow", "host", "none"]),
    ("holt run --net @py", ["@python"]),
    ("holt run --net=@g", ["@github", "@gitlab", "@go", "@gradle"]),
    ("holt run --net a.example:443,@py", ["@python"]),
    ("holt run --net=@npm,@g", ["@github", "@gitlab", "@go", "@gradle"]),
    ("holt run --net a,py", []),
    ("holt run --sni ", ["optional", "required"]),
    ("holt run --allow-degraded l", ["landlock", "limits"]),
    ("holt run --allow-syscall @n", ["@namespace", "@network", "@numa"]),
    ("holt run --deny-syscall=@n", ["@namespace", "@network", "@numa"]),
    ("holt run --timeout ", []),
    ("holt run --env HOLT_COMPLETED=a:b --pol", ["--policy"]),
    ("holt run --env COMP", []),
    ("holt run --env XDG_DATA_", ["XDG_DATA_HOME"]),
    ("holt run --ro f", ["f.json", "file"]),
    ("holt run --ro fi", ["file"]),
    ("holt run -v fi", ["file"]),
    ("holt run --ro=fi", ["file"]),
    ("holt run --ro fi:/x --cwd d", ["dir"]),
    ("holt policy check fi", ["file"]),
    ("holt run -- ls fi", ["file"]),
    ("holt run --ro a@b ls x=y fi", ["file"]),
    ("holt doctor --j", ["--json"]),
    ("holt exec w", ["work"]),
    ("holt exec --det", ["--detach"]),
    ("holt exec work --detach ls fi", ["file"]),
    ("holt exec work --cwd fi -- ls fi", ["file"]),
    ("holt exec work --keep ", ["head", "tail"]),
    ("holt rm other w", ["work"]),
    ("holt kv work k", ["keys"]),
    ("holt files work c", ["cat", "cp"]),
    ("holt files work put fi", ["file"]),
    ("holt files work get inside fi", ["file"]),
    ("holt files work cat fi", []),
    ("holt tier work l", ["large"]),
    ("holt tier w", ["work"]),
    ("holt rebind w", ["work"]),
    ("holt cp f", ["f.json", "file"]),
    ("holt cp file w", ["work:"]),
    ("holt cp file work:f", []),
    ("holt python work fi", ["file"]),
    ("holt audit work --kind g", ["grant", "guard"]),
    ("holt kill work p1 --signal US", ["USR1", "USR2"]),
    ("holt kill work p1 --signal=SIGUS", ["SIGUSR1", "SIGUSR2"]),
    ("holt run --allow-syscall unsh", ["unshare"]),
    ("holt create new --deny-syscall ptr", ["ptrace"]),
    ("holt run --route anth", ["anthropic"]),
    ("holt run --helper fi", ["file"]),
    ("holt policy routes np", ["npm"]),
    ("holt exec work -- twic", ["twice"]),
    ("holt run twic", ["twice"]),
    ("holt show ", ["work"]),
    ("holt create ", []),
))
def test_bash_completes(
    line: str, expected: list[str], completed: Callable[[str], list[str]], put: Put, holt: Holt
) -> None:
    holt(["create", "work"], env=sessions(holt)).ok()
    put("file")
    put("f.json")
    put("dir/x")
    for where in ("bin", "more/bin"):
        put(f"{where}/twice", mode=0o755)

    assert completed(line) == expected


@needs("bash", "fish", "zsh")
@pytest.mark.identities("user")
def test_paths_in_a_session_are_completed(
    completed: Callable[[str], list[str]], others: Callable[[str, str], list[str]], holt: Holt, put: Put
) -> None:
    """No file of the host is offered. A session at rest stays at rest."""
    shells = (completed, lambda line: others("fish", line), lambda line: others("zsh", line))
    put("inhost/x")
    holt(["create", "work"], env=sessions(holt)).ok()
    for complete in shells:
        assert complete("holt files work cat in") == []
    assert "at rest" in holt(["show", "work"], env=sessions(holt)).ok().out
    holt(["exec", "work", "--shell", "mkdir -p in/deep; touch in/file inside; ln -s in inlink"], env=sessions(holt)).ok()

    for complete in shells:
        assert complete("holt files work cat in") == ["in/", "inlink", "inside"]
        assert complete("holt files work mv in/file in/") == ["in/deep/", "in/file"]
        assert complete("holt files work cat out") == []
        assert complete("holt exec work --cwd in") == complete("holt python work --cwd in") == ["in/"]
    assert completed("holt exec work --cwd=in") == ["in/"]
    for complete in shells[:2]:
        assert complete("holt files work put in") == complete("holt files work get inside in") == ["inhost" + "/" * (complete != completed)]
    holt(["stop", "work"], env=sessions(holt)).ok()
    for complete in shells:
        assert complete("holt files work cat in") == ["in/", "inlink", "inside"]
    assert "at rest" in holt(["show", "work"], env=sessions(holt)).ok().out


HOSTILE = (
    "x//;e_touch_pwned;s/x", "--x//;e_touch_pwned;s/x", "-x/e;w_pwned", "--ro=$(touch_pwned)", "$(touch_pwned)",
    "`touch_pwned`", "*", "pwn[", "--.*", "a\\/b", "%s%n\\x41", "run_--_touch_pwned", "-n", "'", '"', "\\", "(touch pwned)",
)


@needs("bash", "fish", "zsh")
@pytest.mark.identities("user")
@pytest.mark.parametrize("shell", ("bash", "fish", "zsh"))
@pytest.mark.parametrize("line", (
    "holt WORD ", "holt run WORD", "holt exec WORD --cwd in", "holt run --net WORD,@g",
    *(pytest.param(line, marks=pytest.mark.slow) for line in (
        "holt help WORD ", "holt policy WORD ", "holt policy show WORD -", "holt WORD work -", "holt run WORD -",
        "holt run --ro WORD --js", "holt exec work WORD --cwd in", "holt files WORD ls in", "holt files work cat WORD/in",
        "holt files work WORD in", "holt kv WORD get ke", "holt kv work get WORD", "holt kv work WORD ke",
        "holt kill WORD p", "holt cp WORD f", "holt cp f work:WORD", "holt cp WORD:f", "holt create WORD --policy WORD", "holt rm WORD w",
    )),
))
def test_completion_never_runs_typed_words(
    shell: str, line: str, completed: Callable[..., list[str]], others: Callable[..., list[str]], holt: Holt, put: Put,
    tap: Tap | None,
) -> None:
    """Fake programs named sed, grep and holt note their arguments. The first two never get a typed word, and holt is
    never called in a way that runs a command. Blanks in a word are written "_"."""
    holt(["create", "work"], env=sessions(holt)).ok()
    holt(["exec", "work", "--", "touch", "inside"], env=sessions(holt)).ok()
    put("run")
    put("touch")
    for name in ("sed", "grep", "awk"):
        put(f"spy/{name}", f"#!/bin/sh\nprintf '%s\\n' \"$@\" >>\"$SPIED\"\nexec /usr/bin/{name} \"$@\"\n", 0o755)
    put("spy/holt", f"#!/bin/sh\necho \"$*\" >>\"$ASKED\"\nexec '{holt.binary}' \"$@\"\n", 0o755)
    spied, asked = holt.cwd / "spied", holt.cwd / "asked"
    more = {"PATH": f"{holt.cwd}/spy:{os.environ['PATH']}", "SPIED": str(spied), "ASKED": str(asked)}
    for each in HOSTILE:
        word = each.replace("_", " ") if shell == "bash" else each.replace("_", "${IFS}" if shell == "zsh" else "\\ ")
        spied.write_text("")
        asked.write_text("")
        for path in (spied, asked):
            path.chmod(0o666)
        if shell == "bash":
            completed(line, word=word, more=more)
        else:
            others(shell, line.replace("WORD", word), more=more)

        assert not (holt.cwd / "pwned").exists(), each
        marks = ("pwn", "s%n", "a\\/b", "--.*")
        assert not [w for w in spied.read_text().splitlines() if any(m in w for m in marks)], each
        for call in asked.read_text().splitlines():
            known = ("ls", "files ", "kv ", "ps ", "policy list", "policy syscalls")
            assert call.endswith("--help") and len(call.split()) <= 3 or call.startswith(known), (each, call)
    holt(["stop", "work"], env=sessions(holt)).ok()
    # Messages repeat the typed words, and some of these look like options.
    assert not [wrong for wrong in tap.look() if "is of the command line" not in wrong] if tap else True


@needs("bash")
@pytest.mark.identities("user")
def test_bash_completes_keys(completed: Callable[[str], list[str]], holt: Holt) -> None:
    """The session stays at rest. Bash replaces the text after the last break of a word."""
    holt(["create", "work"], env=sessions(holt)).ok()
    for key in ("key", "k:1", "k:2", "a b"):
        holt(["kv", "work", "set", key, "v"], env=sessions(holt)).ok()
    holt(["stop", "work"], env=sessions(holt)).ok()

    assert completed("holt kv work get ") == ["a b", "k:1", "k:2", "key"]
    assert completed("holt kv work set ke") == ["key"]
    assert completed("holt kv work delete k:") == ["1", "2"]
    assert completed("holt kv work keys ") == []
    assert "at rest" in holt(["show", "work"], env=sessions(holt)).ok().out


@needs("fish", "zsh")
@pytest.mark.identities("user")
@pytest.mark.parametrize("shell", ("fish", "zsh"))
def test_other_shells_complete_keys(shell: str, others: Callable[[str, str], list[str]], holt: Holt) -> None:
    """Files of the workspace are not offered."""
    holt(["create", "work"], env=sessions(holt)).ok()
    for key in ("key", "k:1", "a b"):
        holt(["kv", "work", "set", key, "v"], env=sessions(holt)).ok()
    holt(["stop", "work"], env=sessions(holt)).ok()
    (holt.cwd / "keys").touch()

    assert others(shell, "holt kv work get ") == ["a b", "k:1", "key"]
    assert others(shell, "holt kv work set ke") == ["key"]
    assert others(shell, "holt kv work delete x") == []
    assert others(shell, "holt kv work keys ") == []
    assert "at rest" in holt(["show", "work"], env=sessions(holt)).ok().out


@needs("bash", "fish", "zsh")
@pytest.mark.identities("user")
def test_all_shells_complete_a_set_behind_a_comma(
    completed: Callable[[str], list[str]], others: Callable[[str, str], list[str]]
) -> None:
    """Bash replaces the text after the last "@", and the other shells replace the word."""
    for rules in ("", "a.example,", "*.a.example:443,@npm,"):
        line = f"holt run --net {rules}@g"
        sets = ["@github", "@gitlab", "@go", "@gradle"]
        assert completed(line) == sets, rules
        for shell in ("fish", "zsh"):
            assert others(shell, line) == [f"{rules}{each}" for each in sets], (shell, rules)
    assert completed("holt run --net a,") == others("fish", "holt run --net a,") == others("zsh", "holt run --net a,")
    assert "a,@python" in completed("holt run --net a,")


@needs("bash", "fish", "zsh")
def test_all_shells_complete_the_signals_that_holt_takes(
    completed: Callable[[str], list[str]], others: Callable[[str, str], list[str]], holt: Holt
) -> None:
    """Each signal is sent to a process that has already ended, so that it has no effect."""
    holt(["create", "work"], env=sessions(holt)).ok()
    process = holt(["exec", "work", "--detach", "--", "true"], env=sessions(holt)).ok().out.strip()
    holt(["wait", "work", process], env=sessions(holt)).ok()
    line = f"holt kill work {process} --signal "
    names = completed(line)

    for name in names:
        result = holt(["kill", "work", process, "--signal", name], env=sessions(holt))
        assert "unknown signal" not in result.err, name
    assert {"TERM", "KILL", "USR1", "WINCH"} <= set(names) and "JUNK(32)" not in names
    assert [others(shell, line) for shell in ("fish", "zsh")] == [names, names]
    with_sig = ["SIGTERM"]
    assert [completed(f"{line}SIGTE"), others("fish", f"{line}SIGTE"), others("zsh", f"{line}SIGTE")] == [with_sig] * 3
    holt(["stop", "work"], env=sessions(holt)).ok()


@needs("bash", "fish", "zsh")
@pytest.mark.identities("user")
def test_kill_completes_what_can_be_killed(
    completed: Callable[[str], list[str]], others: Callable[[str, str], list[str]], holt: Holt
) -> None:
    """The other verbs also take processes that have ended."""
    env = sessions(holt)
    holt(["create", "work"], env=env).ok()
    holt(["exec", "work", "--", "true"], env=env).ok()
    holt(["exec", "work", "--detach", "--", "sleep", "1000"], env=env).ok()

    for verb, expected in (("kill", ["p2"]), ("logs", ["p1", "p2"]), ("wait", ["p1", "p2"])):
        line = f"holt {verb} work p"
        assert [completed(line), others("fish", line), others("zsh", line)] == [expected] * 3, verb
    holt(["stop", "work"], env=env).ok()


@needs("bash", "fish", "zsh")
@pytest.mark.identities("user")
def test_cp_completes_paths_in_a_session(
    completed: Callable[[str], list[str]], others: Callable[[str, str], list[str]], holt: Holt
) -> None:
    """Bash replaces only the text after the ":". A session at rest stays at rest."""
    env = sessions(holt)
    holt(["create", "work"], env=env).ok()
    script = "mkdir -p zsub/deep; touch zfile 'zsub/a b' zsub/x; ln -s zfile zlink"
    holt(["exec", "work", "--", "sh", "-c", script], env=env).ok()

    assert completed("holt cp work:z") == ["zfile", "zlink", "zsub/"]
    assert completed("holt cp f work:zsub/") == ["zsub/a b", "zsub/deep/", "zsub/x"]
    for shell in ("fish", "zsh"):
        assert others(shell, "holt cp work:z") == ["work:zfile", "work:zlink", "work:zsub/"]
        assert others(shell, "holt cp f work:zsub/") == ["work:zsub/a b", "work:zsub/deep/", "work:zsub/x"]
        assert others(shell, "holt cp work:nowhere/") == others(shell, "holt cp other:z") == []
    assert completed("holt cp work:nowhere/") == completed("holt cp ./work:z") == []
    holt(["stop", "work"], env=env).ok()
    assert completed("holt cp work:z") == ["zfile", "zlink", "zsub/"]
    assert others("fish", "holt cp work:z") == ["work:zfile", "work:zlink", "work:zsub/"]
    assert "at rest" in holt(["show", "work"], env=env).ok().out


@needs("bash")
@pytest.mark.identities("user")
def test_bash_offers_no_name_that_it_would_run(completed: Callable[[str], list[str]], holt: Holt) -> None:
    """In a completed word, bash quotes all special characters except "$" and "`". A command chooses the names of its files."""
    env = sessions(holt)
    holt(["create", "work"], env=env).ok()
    names = ("zgood;id", "z`id`", "z$(id)", "z$HOME")
    holt(["exec", "work", "--", "touch", *names], env=env).ok()
    holt(["exec", "work", "--", "mkdir", "zd"], env=env).ok()

    assert completed("holt cp work:z") == completed("holt files work cat z") == ["zd/", "zgood;id"]
    holt(["stop", "work"], env=env).ok()
