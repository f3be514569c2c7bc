"""How tests run everywhere: how long one example takes is the machine's affair, so no example has a deadline."""

from hypothesis import settings

settings.register_profile("pagefold", deadline=None)
settings.load_profile("pagefold")
