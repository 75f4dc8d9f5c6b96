"""What guessing is worth: recorded texts replayed against a price list, and, with models, measured."""
