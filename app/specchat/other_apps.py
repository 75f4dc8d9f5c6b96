"""The model files that other programs keep on this machine: looked at, never changed."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from specchat.catalogue import SPLIT_NAME

DEPTH = 6  # folders below a store
MANIFEST_BYTES = 1 << 20
_MODEL_LAYER = "application/vnd.ollama.image.model"


@dataclass(frozen=True, slots=True)
class Found:
    """A model file of another program; of a split model, the first part."""

    app: str
    name: str  # as the program calls it
    path: Path
    size: int  # bytes, of all parts that are there

    @property
    def short_name(self) -> str:
        """What to call it here: its file's name, or of library/qwen2.5:latest and hf.co/o/n-GGUF:Q4_0 what matters."""
        if self.path.suffix.lower() == ".gguf":
            return self.path.name
        name, _, tag = self.name.rpartition("/")[2].partition(":")  # a file that is called by its checksum
        name = re.sub(r"[-_.]gguf$", "", name, flags=re.IGNORECASE)
        return name if tag in ("", "latest") else f"{name}-{tag}"


def find_models(environ: Mapping[str, str], home: Path, platform: str = sys.platform) -> list[Found]:
    """All of them, each file once, by program and name."""
    found: dict[Path, Found] = {}
    for app, folder in stores(environ, home, platform):
        for each in _ollama(folder) if app == "Ollama" else _files(app, folder):
            with suppress(OSError):
                found.setdefault(each.path.resolve(), each)
    return sorted(found.values(), key=lambda each: (each.app, each.name.lower()))


def stores(environ: Mapping[str, str], home: Path, platform: str) -> list[tuple[str, Path]]:
    """The folders in which each program keeps models here, there or not."""
    cache = Path(environ.get("XDG_CACHE_HOME") or home / ".cache")
    hf_home = Path(environ.get("HF_HOME") or cache / "huggingface")
    llama_cache = {
        "win32": Path(environ.get("LOCALAPPDATA") or home / "AppData" / "Local"),
        "darwin": home / "Library" / "Caches",
    }.get(platform, cache)
    lm_studio = home / ".lmstudio"
    with suppress(OSError, ValueError):
        lm_studio = Path((home / ".lmstudio-home-pointer").read_text("utf-8").strip() or lm_studio)
    folders = [
        ("Hugging Face", environ.get("HF_HUB_CACHE") or environ.get("HUGGINGFACE_HUB_CACHE") or hf_home / "hub"),
        ("LM Studio", lm_studio / "models"),
        ("LM Studio", _lm_studio_downloads(lm_studio)),
        ("LM Studio", home / ".cache" / "lm-studio" / "models"),  # before version 0.3
        ("llama.cpp", environ.get("LLAMA_CACHE") or llama_cache / "llama.cpp"),
        ("Ollama", environ.get("OLLAMA_MODELS") or home / ".ollama" / "models"),
        ("Ollama", Path("/usr/share/ollama/.ollama/models") if platform.startswith("linux") else None),
    ]
    known = [(app, Path(os.path.expanduser(folder))) for app, folder in folders if folder is not None]
    return list(dict.fromkeys(known))


def _lm_studio_downloads(folder: Path) -> Path | None:
    with suppress(OSError, ValueError, LookupError, TypeError):
        chosen = json.loads((folder / "settings.json").read_text("utf-8"))["downloadsFolder"]
        if isinstance(chosen, str) and chosen:
            return Path(chosen)
    return None


def _files(app: str, store: Path) -> Iterator[Found]:
    for folder, folders, names in os.walk(store):
        place = Path(folder)
        if len(place.parts) - len(store.parts) >= DEPTH:
            folders.clear()
        # The hub cache has every file twice: its bytes under a number, and a link to them under its name.
        folders[:] = sorted(name for name in folders if name != "blobs" and not name.startswith("."))
        for name in names:
            split = SPLIT_NAME.fullmatch(name)
            if not name.lower().endswith(".gguf") or (split and int(split["number"]) != 1):
                continue
            with suppress(OSError):  # a link to nothing
                parts = [place / name]
                if split:
                    parts = sorted(place.glob(f"{_literal(split['stem'])}-[0-9]*-of-{split['count']}.gguf"))
                size = sum(part.stat().st_size for part in parts)
                yield Found(app, _title(store, place / name), place / name, size)


def _title(store: Path, path: Path) -> str:
    """The file's name, under that of its repository where the folders have one."""
    inside = path.relative_to(store)
    if match := re.fullmatch(r"models--([^/\\]+?)--([^/\\]+)", inside.parts[0]):
        return f"{match[1]}/{match[2]}/{path.name}"
    return inside.as_posix()


def _ollama(store: Path) -> Iterator[Found]:
    manifests = store / "manifests"
    for folder, folders, names in os.walk(manifests):
        folders.sort()
        for tag in sorted(names):
            path = Path(folder) / tag
            with suppress(OSError, ValueError, LookupError, TypeError):
                if path.stat().st_size > MANIFEST_BYTES:
                    continue
                layers = json.loads(path.read_text("utf-8"))["layers"]
                digests = [layer["digest"] for layer in layers if layer["mediaType"] == _MODEL_LAYER]
                if len(digests) != 1 or not re.fullmatch(r"sha256[:-][0-9a-f]{64}", digests[0]):
                    continue
                blob = store / "blobs" / digests[0].replace(":", "-")
                parts = path.relative_to(manifests).parts
                # registry.ollama.ai/library/llama3/8b is called llama3:8b there.
                owner = parts[1:-1] if parts[0] == "registry.ollama.ai" else parts[:-1]
                name = "/".join(owner[1:] if owner[0] == "library" else owner)
                yield Found("Ollama", f"{name}:{tag}", blob, blob.stat().st_size)


def _literal(text: str) -> str:
    return re.sub(r"([*?\[])", r"[\1]", text)
