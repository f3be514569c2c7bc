"""One exact solver for both choices pagefold makes: what of a result is shown, and at which level each page stands."""
