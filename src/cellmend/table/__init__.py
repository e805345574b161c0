"""What the user gave: a table of any kind, what its columns are, and how they are written."""
