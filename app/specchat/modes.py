"""Who may guess, by the names that settings, flags and reports use; importing this loads nothing."""

MODES = ("auto", "draft", "lookup", "recycling", "eagle", "eagle3", "medusa", "mtp", "off")
