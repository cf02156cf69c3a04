"""The local page: browse runs, read dialogues, ask "what if the bot had said ...?"."""
