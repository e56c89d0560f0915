"""The example support desk: tools whose effects are real on this machine, on one folder."""
