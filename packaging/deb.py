"""Makes the Debian package of a stand-alone folder: `python packaging/deb.py dist/specchat dist`.

What is around the program is asked of the program itself: version, completions, manual. Needs dpkg-deb.
"""

from __future__ import annotations

import argparse
import gzip
import os
import platform
import shutil
import subprocess
import tempfile
from datetime import UTC, datetime
from email.utils import format_datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
HERE = Path(__file__).with_name("linux")
COMPLETIONS = {
    "bash": "usr/share/bash-completion/completions/specchat",
    "zsh": "usr/share/zsh/vendor-completions/_specchat",
    "fish": "usr/share/fish/vendor_completions.d/specchat.fish",
}
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
# What lintian says of any folder that brings its own Python and libraries, and why that is meant.
OVERRIDES = """\
# The folder brings its own Python, numpy and llama.cpp, so that it runs where none is installed.
specchat: embedded-library
specchat: unstripped-binary-or-object
specchat: hardening-no-fortify-functions
specchat: hardening-no-pie
specchat: custom-library-search-path
specchat: library-not-linked-against-libc
specchat: shared-library-lacks-prerequisites
specchat: package-contains-documentation-outside-usr-share-doc
specchat: extra-license-file
"""


def main() -> None:
    """Builds the package and prints its path."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("folder", type=Path, help="what PyInstaller made")
    options.add_argument("out", type=Path, help="where the package goes")
    options.add_argument("--compress", default="xz", choices=("xz", "zstd", "gzip", "none"))
    args = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "specchat"
        version = fill(tree, args.folder)
        package: Path = args.out / f"specchat_{version}_{architecture()}.deb"
        args.out.mkdir(parents=True, exist_ok=True)
        command = ["dpkg-deb", "--root-owner-group", f"-Z{args.compress}", "--build", str(tree), str(package)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    print(package)


def fill(tree: Path, folder: Path) -> str:
    """Lays out the package's tree; returns its version."""
    program = folder.resolve() / "specchat"
    version = said(program, "--version").split()[-1]
    shutil.copytree(folder, tree / "usr/lib/specchat", symlinks=True)
    (tree / "usr/bin").mkdir(parents=True)
    (tree / "usr/bin/specchat").symlink_to("../lib/specchat/specchat")
    put(tree / "usr/share/applications/specchat.desktop", (HERE / "specchat.desktop").read_bytes())
    put(tree / "usr/share/icons/hicolor/scalable/apps/specchat.svg", (HERE / "specchat.svg").read_bytes())
    for shell, place in COMPLETIONS.items():
        put(tree / place, said(program, "completion", shell).encode())
    put(tree / "usr/share/man/man1/specchat.1.gz", squeezed(said(program, "manual").encode()))
    put(tree / "usr/share/doc/specchat/changelog.gz", squeezed((ROOT / "CHANGELOG.md").read_bytes()))
    put(tree / "usr/share/doc/specchat/changelog.Debian.gz", squeezed(changelog(version).encode()))
    put(tree / "usr/share/doc/specchat/copyright", copyright_of(folder).encode())
    put(tree / "usr/share/lintian/overrides/specchat", OVERRIDES.encode())
    kib = installed_kib(tree)
    put(tree / "DEBIAN/control", control(version, kib).encode())
    set_modes(tree, tree / "usr/lib/specchat/specchat")
    return version


def control(version: str, kib: int) -> str:
    """The control file. The C library must be at least that of the machine that built the folder."""
    return f"""\
Package: specchat
Version: {version}
Architecture: {architecture()}
Maintainer: {maintainer()}
Installed-Size: {kib}
Depends: libc6 (>= {platform.libc_ver()[1]})
Section: utils
Priority: optional
Description: private chat for the terminal that guesses ahead
 specchat runs GGUF models on this machine. A cheap guesser proposes the next
 tokens, the model checks them all in one pass, and only what it would have
 written anyway is kept, so that the answer comes faster and stays the same.
"""


def changelog(version: str) -> str:
    """The entry that Debian's tools read; what changed stands in the changelog beside it."""
    when = format_datetime(datetime.fromtimestamp(int(os.environ.get("SOURCE_DATE_EPOCH", "0")), UTC))
    return f"specchat ({version}) stable; urgency=medium\n\n  * See changelog.gz.\n\n -- {maintainer()}  {when}\n"


def copyright_of(folder: Path) -> str:
    """Our licence, and where the licences of the packages inside lie."""
    metadata = sorted(path.name for path in (folder / "_internal").glob("*.dist-info"))
    inside = "\n".join(f" {name}" for name in metadata)
    return f"""\
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: specchat

Files: *
Copyright: 2026 the authors of specchat
License: Apache-2.0
 On Debian systems the text is in /usr/share/common-licenses/Apache-2.0.
Comment:
 The folder /usr/lib/specchat also holds Python (PSF-2.0) and these packages,
 whose authors and licences stand in their folders below _internal:
 .
{inside}
"""


def architecture() -> str:
    """Debian's name of this machine's kind. Raises KeyError for one that nobody has tried."""
    return ARCHITECTURES[platform.machine()]


def maintainer() -> str:
    """As Debian's tools are told; a package that is published needs a real address."""
    name = os.environ.get("DEBFULLNAME", "specchat developers")
    return f"{name} <{os.environ.get('DEBEMAIL', 'specchat@invalid.invalid')}>"


def set_modes(tree: Path, program: Path) -> None:
    """The same whatever the umask was: only folders and the program can be executed."""
    for path in [tree, *tree.rglob("*")]:
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() or path == program else 0o644)


def installed_kib(tree: Path) -> int:
    """What it takes on disk, as Debian counts: whole KiB a file, one for each folder and link."""
    return sum(-(-p.lstat().st_size // 1024) if p.is_file() and not p.is_symlink() else 1 for p in tree.rglob("*"))


def said(program: Path, *words: str) -> str:
    """What the program prints. Raises CalledProcessError."""
    return subprocess.run([program, *words], check=True, stdout=subprocess.PIPE, text=True).stdout


def squeezed(content: bytes) -> bytes:
    """Compressed the same way every time."""
    return gzip.compress(content, 9, mtime=0)


def put(path: Path, content: bytes) -> None:
    """Writes a file, with the folders above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


if __name__ == "__main__":
    main()
