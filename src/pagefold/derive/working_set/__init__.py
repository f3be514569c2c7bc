"""The working set: what stands, after a fold, in place of everything before the last exchanges."""
