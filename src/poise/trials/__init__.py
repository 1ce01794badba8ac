"""Trials: what `poise track`, `poise balance` and `poise compare` run and write."""
