"""The tests: what one looks like, how a bank is read and checked, in which order options are shown."""
