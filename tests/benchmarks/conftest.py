"""Some of the packages that are raced against switch off the loggers of everybody else."""

import logging

import pytest


@pytest.fixture(autouse=True)
def _loggers_stay_on():
    level = logging.root.manager.disable
    yield
    logging.disable(level)
    for name, logger in logging.root.manager.loggerDict.items():
        if name.startswith("dialeval") and isinstance(logger, logging.Logger):
            logger.disabled, logger.propagate = False, True
            logger.setLevel(logging.NOTSET)
