"""The screens that lie over the chat for a moment and hand back one answer."""
