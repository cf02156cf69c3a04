"""The learners that the loop trains: a network with its batches, its loss and its validation."""
