"""Virtual memory for the context of LLM agents. Everything an agent reads is a page."""

__version__ = "0.1.0"
