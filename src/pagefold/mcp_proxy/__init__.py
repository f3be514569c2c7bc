"""The MCP proxy: in front of any MCP servers, every tool result denser, recallable and often there before it is asked for."""
