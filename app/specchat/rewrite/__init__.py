"""A file written again by a model: what is asked, what of the reply is the file, what of it is kept, and how to undo.

Bytes and lines only: no model, no screen, no command line.
"""
