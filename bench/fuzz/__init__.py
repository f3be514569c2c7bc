"""Fuzzing of everything that reads what others write: see `python -m bench.fuzz --help`."""
