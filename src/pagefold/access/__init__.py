"""Who may use a shared server: teams, their tokens, what they may spend, and the record of administrative acts."""
