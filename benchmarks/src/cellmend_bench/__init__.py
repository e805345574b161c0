"""The paper's experiments, its baselines, and the peers that practitioners reach for."""
