"""Algorithm 1 of the paper as a graph of units: what a head is asked, when, and what row its reply becomes. No Ray,
no files."""
