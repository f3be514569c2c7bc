"""The MCP proxy: in front of any MCP servers, every tool result denser, and nothing else noticed."""
