"""specchat: a private chat for the terminal that guesses ahead and never changes the answer."""

__version__ = "0.1.0"
