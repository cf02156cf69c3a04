"""Models answer questions. `source.Models` is what the engine asks for them.

One file per kind of model: each has `load(directory, *, device)`, and kinds that are alike share a
file (`pair_scorer`, `topic_graph`). `loading` and `layout` are what all share on the way from text
to token ids.
"""
