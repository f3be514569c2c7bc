"""The MCP proxy: stands in front of any MCP servers and makes tool results shorter, without changing anything else."""
