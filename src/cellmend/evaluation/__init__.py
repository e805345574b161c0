"""What to expect on a table of one's own: errors put into it, and what is found of them."""
