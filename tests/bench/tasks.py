"""Prompts of the tests' own for measuring: texts to rewrite, open questions, code to write."""

from __future__ import annotations

from specchat.bench import workloads

PARAGRAPHS, QUESTIONS = workloads.PARAGRAPHS[:3], workloads.QUESTIONS[:3]
CODE = (
    "Write a Python function that merges two sorted lists into one sorted list.",
    "Write a Python class for a bank account with deposit, withdraw and a history.",
    "Write a SQL query that lists the ten customers with the highest total of orders, and explain it.",
)

TASKS: dict[str, tuple[str, ...]] = {
    "rewrite": tuple(f"Rewrite this paragraph in a more formal style.\n\n{text}" for text in PARAGRAPHS),
    "open": QUESTIONS,
    "code": CODE,
}
