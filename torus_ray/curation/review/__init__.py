"""Human verification of a bank: verdicts, what they do to a test's file, and the page they are given on."""
