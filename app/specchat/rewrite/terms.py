"""On what terms a rewrite goes on, besides what is asked: what must not change, how it is written, what is kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from specchat.rewrite.backups import checked_suffix
from specchat.rewrite.checks import Rails, rails
from specchat.rewrite.endings import Endings
from specchat.rewrite.merge import FinalNewline, LineEnds


@dataclass(frozen=True, slots=True)
class Terms:
    """Those of one command line; a rewrite that was cut off keeps them for the next one."""

    guard: Rails = field(default_factory=Rails)
    strict: bool = False
    endings: Endings = field(default_factory=Endings)
    backup_suffix: str | None = None
    keeps_backup: bool = True

    def over(self, earlier: Terms) -> Terms:
        """These, and where they leave something open the earlier ones; what was ruled out once stays so."""
        endings, before = self.endings, earlier.endings
        return Terms(
            guard=self.guard.beside(earlier.guard),
            strict=self.strict or earlier.strict,
            endings=Endings(
                before.ends if endings.ends is LineEnds.KEEP else endings.ends,
                before.final_newline if endings.final_newline is FinalNewline.KEEP else endings.final_newline,
            ),
            backup_suffix=earlier.backup_suffix if self.backup_suffix is None else self.backup_suffix,
            keeps_backup=self.keeps_backup and earlier.keeps_backup,
        )

    def guarded_by(self, guard: Rails) -> Terms:
        """The same with other guard rails, for any file."""
        return replace(self, guard=replace(guard, spans=None))

    def as_json(self) -> dict[str, Any]:
        """As JSON holds it."""
        return {
            "max_change": self.guard.max_change,
            "keep": sorted(self.guard.keep),
            "protect": [each.text for each in self.guard.protect],
            "strict": self.strict,
            "line_ends": self.endings.ends,
            "final_newline": self.endings.final_newline,
            "backup_suffix": self.backup_suffix,
            "keeps_backup": self.keeps_backup,
        }

    @staticmethod
    def from_json(found: Mapping[str, Any]) -> Terms:
        """What `as_json` gave. Raises KeyError, TypeError, ValueError and UsageError for anything else."""
        limit, suffix = found["max_change"], found["backup_suffix"]
        return Terms(
            guard=rails(None if limit is None else float(limit), found["keep"], found["protect"]),
            strict=bool(found["strict"]),
            endings=Endings(LineEnds(found["line_ends"]), FinalNewline(found["final_newline"])),
            backup_suffix=None if suffix is None else checked_suffix(suffix),
            keeps_backup=bool(found["keeps_backup"]),
        )
