"""What a tool's answer is worth, what it costs, what it invalidates and what usually comes next."""
