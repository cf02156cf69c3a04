import pytest
from systems.loopback import serving


@pytest.fixture
def server():
    with serving() as running:
        yield running
