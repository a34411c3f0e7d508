"""Formulas of the audio metrics (METRICS 3-7): arrays and texts in, frozen dataclasses out, nothing of ours needed.

Importing this package pulls in nothing, so that its front ends also run inside the environment of a model.
"""
