"""The steps of ranks: which ranks hang, which are slow, and which have started."""
