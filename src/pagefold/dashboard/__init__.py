"""A view of what the proxies do and what the store holds, for a browser on this machine. It changes nothing."""
