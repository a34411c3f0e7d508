"""`python -m torus_ray.cli`: the `torus` command without its script."""

from torus_ray.cli import main

main()
