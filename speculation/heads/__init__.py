"""Heads: small networks that guess from the hidden states of the target itself; numpy alone, no files."""
