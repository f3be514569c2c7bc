"""What was decided and what it came to: events, what they add up to, and where they are written."""
