"""Speculative decoding as a library: guess ahead, check with the target model, never change the text.

Token ids in, token ids out. It knows no text, no files, no network and no screen; only `speculation.llama`
knows llama.cpp, and importing this package does not load it.
"""
