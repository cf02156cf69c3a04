"""Models that write: `generator.load_generator` makes one of any model that can."""
