"""Controllers: each decides, before a step, who guesses and how far."""
