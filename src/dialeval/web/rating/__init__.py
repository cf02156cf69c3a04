"""The pages of raters and of their organiser."""
