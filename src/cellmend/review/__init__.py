"""A local page on which people decide about flagged cells; `cellmend review DIR`."""
