"""Ratings of dialogues by people: the design of a rating job, its storage and its results."""
