"""Declares every setting, with its name, default, meaning and the values it takes, as fields of one frozen value.

To add a setting, add a field to a section: the reader, the listing and the reference page follow from it. Nothing here
reads a file, an environment variable or a flag; `config` does, and checks every value against its rule.
"""
