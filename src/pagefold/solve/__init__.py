"""Does an agent work as well behind pagefold? Tasks with checkers, an agent loop, a simulated agent, and a verdict."""
