"""Chats on disk: kept as they happen, found again, taken elsewhere. Knows no engine and no screen."""
