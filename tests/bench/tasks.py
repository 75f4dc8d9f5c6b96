"""Prompts of the tests' own for measuring: texts to rewrite, open questions, code to write."""

from __future__ import annotations

PARAGRAPHS = (
    "The ferry to the island leaves twice a day in winter. If the wind turns north, the captain waits, because the "
    "harbour mouth is narrow and the waves break across it. Locals keep a bag packed and a book in it.",
    "We tried the new oven on Saturday. The bread rose too fast and tore along one side, yet the crumb was open and "
    "moist. Next time we will lower the heat after ten minutes and cut the loaf a little deeper.",
    "The committee met for three hours and agreed on the date but not on the place. Two members want the old library, "
    "one wants the school hall, and the chair says that neither has enough chairs for the guests.",
)
QUESTIONS = (
    "Why is the sky blue during the day and red in the evening?",
    "What should I think about before I adopt a dog?",
    "Explain what inflation is to somebody who has never heard the word.",
)
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
