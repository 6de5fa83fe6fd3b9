"""Whether what is claimed with probability 1 − δ holds as often: Monte Carlo on laws whose mean is known exactly."""
