"""Growing a bank (paper 3.2, Appendix D): drafting from seeds, the coupled gate, human verification."""
