"""`frozen`, a decorator for data classes that the type checker treats as frozen and Python does not.

A data class that is frozen at run time takes four times as long to make, and two dozen are made for every request that
passes a proxy.
"""

from dataclasses import dataclass, field
from typing import TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(made: type[T]) -> type[T]:
    return dataclass(slots=True, unsafe_hash=True)(made)
