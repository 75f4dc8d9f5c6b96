"""Token bytes -> text, holding back what is undecided: half a character, or what may become a stop string."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Collection, Sequence

from speculation.types import Finish


class ReplyText:
    """The text of one reply as its tokens arrive. It is the `Ends` of the engine's loop."""

    def __init__(self, piece: Callable[[int], bytes], ends: Collection[int], stop: Sequence[str] = ()) -> None:
        """`piece` gives a token's bytes, `ends` are the tokens that end a reply, `stop` the texts that do."""
        self._piece = piece
        self._ends = ends
        self._stop = [text for text in stop if text]
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._held = ""  # decoded, but perhaps the beginning of a stop string
        self._fresh: list[str] = []  # decided and not taken yet
        self.tokens: list[int] = []  # of the reply, without the end token
        self.text = ""  # all that was decided
        self.stopped_by = ""  # the stop string that was met

    def feed(self, tokens: Sequence[int]) -> tuple[int, Finish] | None:
        """See `speculation.engine.Ends`."""
        for count, token in enumerate(tokens, start=1):
            if token in self._ends:
                return count, Finish.END
            self.tokens.append(token)
            self._held += self._decoder.decode(self._piece(token))
            if self._meets_stop():
                return count, Finish.STOP
            self._release(len(self._held) - self._undecided())
        return None

    def take(self) -> str:
        """The text that was decided since the last call."""
        text = "".join(self._fresh)
        self._fresh.clear()
        return text

    def finish(self) -> None:
        """No more tokens will come: what was held is text after all; half a character becomes one mark."""
        if not self.stopped_by:
            self._held += self._decoder.decode(b"", final=True)
            self._release(len(self._held))

    def kept_tokens(self) -> int:
        """How many of the reply's tokens lie wholly inside the text that is shown."""
        if not self.stopped_by:
            return len(self.tokens)
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        length = 0
        for count, token in enumerate(self.tokens):
            length += len(decoder.decode(self._piece(token)))
            begun = 1 if decoder.getstate()[0] else 0  # half a character stands where the next one will
            if length + begun > len(self.text):
                return count
        return len(self.tokens)

    def _meets_stop(self) -> bool:
        at = [(place + len(text), place, text) for text in self._stop if (place := self._held.find(text)) >= 0]
        if not at:
            return False
        _, place, self.stopped_by = min(at)  # the first to be complete, however the text is cut into tokens
        self._release(place)
        self._held = ""
        return True

    def _undecided(self) -> int:
        """The length of the longest end of the held text that begins a stop string."""
        longest = max((len(text) for text in self._stop), default=1) - 1
        for size in range(min(longest, len(self._held)), 0, -1):
            if any(text.startswith(self._held[-size:]) for text in self._stop):
                return size
        return 0

    def _release(self, size: int) -> None:
        if size > 0:
            self._fresh.append(self._held[:size])
            self.text += self._held[:size]
            self._held = self._held[size:]
