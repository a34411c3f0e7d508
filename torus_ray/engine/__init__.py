"""What runs a run: hosts, pools, dispatch, environments. The only place that imports Ray."""
