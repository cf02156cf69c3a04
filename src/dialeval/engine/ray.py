"""Joins a Ray cluster, or starts one on this machine for the time of a run.

`ray_job.py` is what runs there: the process that was started keeps the order. `ray_reading.py` and
`ray_worker.py` are what tasks and workers do.
"""

from __future__ import annotations

import importlib
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from dialeval.errors import UsageError

OBJECT_STORE = 256 << 20
"""Bytes of shared memory of a cluster on this machine: metrics, digests and ids of samples."""


def import_ray() -> Any:
    try:
        return importlib.import_module("ray")
    except ModuleNotFoundError as error:
        raise UsageError("Ray is not here. Install: pip install 'dialeval[ray]'") from error


@contextmanager
def cluster(address: str = "", workers: int | None = None) -> Iterator[None]:
    """Yields the cluster at an address; without one, a cluster on this machine that ends with the
    block.

    A program that called `ray.init` itself keeps its cluster, and is left connected to it.
    """
    ray = import_ray()
    if ray.is_initialized():
        yield
        return
    if address:
        connect(ray, address)
    else:
        _start_here(ray, workers)
    try:
        yield
    finally:
        ray.shutdown()


def connect(ray: Any, address: str) -> None:
    if "://" in address:
        raise UsageError(
            f"--ray-address {address}: expected HOST:PORT or auto. Run dialeval on a machine of the"
            " cluster: Ray Client (ray://) is not supported."
        )
    if address != "auto":
        _check_is_there(address)
    try:
        ray.init(address=address, log_to_driver=False, logging_level="error")
    except (ConnectionError, ValueError, RuntimeError, OSError) as error:
        raise UsageError(
            f"no Ray cluster can be joined at {address}: {first_line(error)}. It needs a node of"
            " the cluster on this machine (ray start --address=...)."
        ) from error


def _check_is_there(address: str) -> None:
    """Ray itself would go on trying for many minutes."""
    host, _, port = address.rpartition(":")
    if not (host and port.isdecimal()):
        raise UsageError(f"--ray-address {address}: expected HOST:PORT or auto")
    try:
        socket.create_connection((host, int(port)), timeout=10).close()
    except (OSError, OverflowError) as error:
        raise UsageError(f"no Ray cluster answers at {address}: {first_line(error)}") from error


def _start_here(ray: Any, workers: int | None) -> None:
    cores = os.cpu_count() or 1
    if workers and workers > cores:
        raise UsageError(f"{workers} workers take a core each, but this machine has {cores}")
    # Ray sends usage reports unless told otherwise; nothing leaves the machine unless asked.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    ray.init(
        address="local",
        num_cpus=workers,
        include_dashboard=False,
        object_store_memory=OBJECT_STORE,
        log_to_driver=False,
        logging_level="error",
    )


def first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0].rstrip(".") if lines else type(error).__name__
