"""pagefold in other people's frameworks: each module is for one, imports it, and says so where it is missing."""
