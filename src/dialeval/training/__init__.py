"""Training: one recipe per model, one driver, one loop."""
