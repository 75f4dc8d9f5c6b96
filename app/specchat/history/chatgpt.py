"""Conversations as ChatGPT exports them: a tree of messages, of which only what was said between two is taken."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from specchat.chat import BETWEEN_TURNS, TITLE_LENGTH
from specchat.conversation import Role
from specchat.history.records import ChatRecord, TurnRecord

NO_QUESTION = "(no question)"  # in front of a conversation that begins with a reply
_ROLES = {str(role): role for role in Role}
_SAID = ("text", "multimodal_text")  # kinds of content that people see; others are the work of tools, or thoughts


@dataclass(frozen=True, slots=True)
class _Node:
    """A message of the export."""

    id: str
    text: str
    role: Role | None  # None: it is not shown
    created: float
    model: str


def is_conversation(found: Mapping[str, Any]) -> bool:
    """Whether an object is a conversation of such an export."""
    return isinstance(found.get("mapping"), dict)


def from_chatgpt(found: Mapping[str, Any]) -> ChatRecord:
    """The conversation with its branches. Raises ValueError, TypeError, LookupError or AttributeError for damage."""
    mapping = found["mapping"]
    created, changed = _seconds(found.get("create_time")), _seconds(found.get("update_time"))
    tree = _Tree(created)
    for node_id, parent in _in_order(mapping):
        tree.add(_node(node_id, mapping[node_id]), parent)
    turns, latest, tip = tree.finished(found.get("current_node"))
    title = " ".join(str(found.get("title") or "").split())
    key = found.get("conversation_id") or found.get("id")
    return ChatRecord(
        key=f"chatgpt:{key}" if key else "",
        created=created,
        changed=changed or created,
        title=title[: 2 * TITLE_LENGTH] or "imported",
        is_named=True,
        system=tree.system,
        model=str(found.get("default_model_slug") or tree.model),
        latest=latest,
        tip=tip,
        turns=turns,
    )


class _Tree:
    """Turns, as the messages come: parents first."""

    def __init__(self, created: float) -> None:
        self.system = ""
        self.model = ""
        self._created = created
        self._turns: dict[int, TurnRecord] = {}
        self._above: dict[str, int | None] = {}  # message -> the last turn of the path to it
        self._begun: dict[int, int] = {}  # reply -> the one that is its beginning

    def add(self, node: _Node, parent: str | None) -> None:
        """Take up a message below another."""
        above = None if parent is None else self._above[parent]
        self.model = node.model or self.model
        if node.role is Role.SYSTEM and above is None:
            self.system = self.system or node.text
        if node.role not in (Role.USER, Role.ASSISTANT):
            self._above[node.id] = above
            return
        text, created = node.text, node.created or self._created
        if node.role is Role.ASSISTANT and above is not None and self._turns[above].role is Role.ASSISTANT:
            # A tool was called in between: what is said before and after is one reply.
            begun = self._turns[above]
            whole = self._append(begun.parent, node.role, text, begun.created)
            self._above[node.id], self._begun[whole] = whole, begun.id
            return
        if node.role is Role.ASSISTANT and above is None:
            above = self._append(None, Role.USER, NO_QUESTION, created)
        self._above[node.id] = self._append(above, node.role, text, created)

    def finished(self, current: Any) -> tuple[tuple[TurnRecord, ...], int | None, int | None]:
        """The turns, which of the first ones is shown, and the tip of the path to the message `current`."""
        answered = {turn.parent for turn in self._turns.values()}
        beginnings = set(self._begun.values()) - answered
        texts = {turn_id: self._whole(turn_id) for turn_id in self._begun if turn_id not in beginnings}
        for turn_id in beginnings:
            del self._turns[turn_id]
        tip = self._above.get(current) if isinstance(current, str) else None
        if tip not in self._turns:
            tip = max(self._turns, default=None)
        latest: dict[int | None, int] = {turn.parent: turn.id for turn in self._turns.values()}
        at = tip
        while at is not None:
            latest[self._turns[at].parent] = at
            at = self._turns[at].parent
        turns = tuple(
            replace(turn, text=texts.get(turn.id, turn.text), latest=latest.get(turn.id))
            for turn in self._turns.values()
        )
        return turns, latest.get(None), tip

    def _whole(self, turn_id: int) -> str:
        """The text of a reply with that of those it goes on."""
        pieces = [self._turns[turn_id].text]
        while (begun := self._begun.get(turn_id)) is not None:
            turn_id = begun
            pieces.append(self._turns[turn_id].text)
        return BETWEEN_TURNS.join(reversed(pieces))

    def _append(self, parent: int | None, role: Role, text: str, created: float) -> int:
        turn_id = len(self._turns) + 1
        self._turns[turn_id] = TurnRecord(turn_id, parent, role, text, created=created)
        return turn_id


def _in_order(mapping: Mapping[str, Any]) -> Iterator[tuple[str, str | None]]:
    """Every message with its parent, parents first, answers in their order."""
    roots = [node_id for node_id, node in mapping.items() if node.get("parent") not in mapping]
    waiting: list[tuple[str, str | None]] = [(root, None) for root in reversed(roots)]
    seen = set()
    while waiting:
        node_id, parent = waiting.pop()
        if node_id in seen or node_id not in mapping:
            continue
        seen.add(node_id)
        yield node_id, parent
        waiting.extend((child, node_id) for child in reversed(mapping[node_id].get("children") or []))


def _node(node_id: str, found: Mapping[str, Any]) -> _Node:
    message = found.get("message")
    if not message:
        return _Node(node_id, "", None, 0.0, "")
    about = message.get("metadata") or {}
    content = message.get("content") or {}
    text = _text(content) if content.get("content_type") in _SAID else ""
    name = (message.get("author") or {}).get("role")
    role = _ROLES.get(str(name))
    hidden = about.get("is_visually_hidden_from_conversation") or message.get("recipient") not in (None, "all")
    return _Node(
        node_id,
        text,
        role if text.strip() and not hidden else None,
        _seconds(message.get("create_time")),
        str(about.get("model_slug") or ""),
    )


def _text(content: Mapping[str, Any]) -> str:
    """What was written; where something else stood, such as a picture, its kind."""
    said = []
    for part in content.get("parts") or []:
        if isinstance(part, str):
            said.append(part)
        elif isinstance(part, dict):
            kind = str(part.get("content_type") or "attachment").removesuffix("_asset_pointer").replace("_", " ")
            said.append(str(part.get("text") or f"[{kind}]"))
    return "\n".join(each for each in said if each)


def _seconds(found: Any) -> float:
    return float(found) if isinstance(found, int | float) and abs(found) < 2**53 else 0.0
