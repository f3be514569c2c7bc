"""Says whether a host or an address is this machine's own."""

from ipaddress import ip_address
from urllib.parse import urlsplit


def is_loopback(host: str) -> bool:
    """Returns whether a host name or IP address is the loopback interface."""
    try:
        return host.lower() == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def is_loopback_url(address: str) -> bool:
    """Returns whether a URL, or `//host:port`, leads to the loopback interface. One that cannot be read does not."""
    try:
        return is_loopback(urlsplit(address).hostname or "")
    except ValueError:
        return False
