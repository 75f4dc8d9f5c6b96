"""Guessers: each proposes the next tokens in its own way; one file a guesser."""
