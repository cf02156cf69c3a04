"""An example plugin for dialeval: the metric `question-rate` and the reader `irc-log`."""
