"""`specchat config`: what is set, where it comes from, what is wrong with it, and how to change it."""
