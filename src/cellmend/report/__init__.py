"""One HTML page about a table."""
