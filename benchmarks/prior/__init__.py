"""A prior over wrong cells, learned from real tables that are spoiled on purpose."""
