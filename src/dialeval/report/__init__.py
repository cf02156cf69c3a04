"""A run, or several, as one page to look at: `dialeval report`."""
