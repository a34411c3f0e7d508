"""Where time goes: traces and pictures of runs, profiles of hosts, and what a run will take."""
