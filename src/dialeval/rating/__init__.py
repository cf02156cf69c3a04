"""What people say about dialogues: the design of a rating job, its storage and its results."""
