"""Flagged cells with repairs and reasons."""
