"""Widgets of the Textual front end."""
