"""Trained heads: made on this machine from what a model writes itself, kept in files, loaded beside the model."""
