"""A provider on loopback that behaves like the real ones by their documentation: the referee.

What it refuses, what it drops and what it bills is decided by pure modules; `referee.Referee` puts them together, and
`server` answers HTTP with it.
"""
