"""Collects the questions of all metrics, has each answered once, and turns answers into a run.

The engine knows neither formula nor file format.
"""
