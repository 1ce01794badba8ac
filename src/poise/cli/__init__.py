"""The command line: poise COMMAND ..."""

from poise.cli.app import app, main

__all__ = ["app", "main"]
