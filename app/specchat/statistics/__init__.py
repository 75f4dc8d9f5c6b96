"""What the records of kept replies are for: figures, advice, tuning. Nothing here prints or sends what was said."""
