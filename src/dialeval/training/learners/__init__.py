"""What the loop trains: a network with its batches, its loss and its validation."""
