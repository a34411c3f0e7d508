"""torus-ray: the engine that runs TORUS, the test of rendering-understanding self-coherence, on Ray.

Importing this package pulls in nothing: a host imports it inside the environment of the model that it serves, where
only numpy, soundfile and soxr can be counted on.
"""

__version__ = "0.1.0"
