"""What people decided about cells, what it teaches, and which cells to ask them about."""
