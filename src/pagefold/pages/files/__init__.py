"""What a session knows about files: their text as it is now, learned from what tools showed and changed."""
