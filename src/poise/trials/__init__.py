"""Trials: a clip, a controller, a world and pushes, run as one, compared and written to files."""

from poise.trials.comparison import compare
from poise.trials.results import save_results
from poise.trials.trial import Trial, prepare_trial

__all__ = ["Trial", "compare", "prepare_trial", "save_results"]
