"""A run, or several, as one page to look at: `dialeval report`."""

from dialeval.callable_package import make_callable

make_callable(__name__, "dialeval.verbs:report")
