"""The metrics, one file each. `dialeval.registry` lists them by name and imports them on demand."""
