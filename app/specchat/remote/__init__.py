"""Replies of a model on a server, behind the session that every front end uses. Nothing here runs unless chosen."""
