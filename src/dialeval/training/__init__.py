"""What learns: one recipe per model, one shared loop."""
