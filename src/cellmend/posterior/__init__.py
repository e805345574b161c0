"""All that is known about a cell is evidence; one learned function weighs it; suspicion and cause follow from that."""
