"""Speed, side by side with peers in one run: `make bench`. Ratios, not seconds, compare between machines."""
