"""`specchat doctor`: what works on this machine, what would work better, and what to do about it."""
