"""Object storage in memory, as the history sink and large contents see it."""

from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(slots=True)
class KeptObjects:
    where: str = "memory"
    objects: dict[str, bytes] = field(default_factory=dict)

    async def put(self, key: str, content: bytes) -> None:
        self.objects[key] = content

    def put_now(self, key: str, content: bytes) -> None:
        self.objects[key] = content

    def limited(self, seconds: float) -> "KeptObjects":
        return self

    def get(self, key: str) -> bytes | None:
        return self.objects.get(key)

    def read(self, key: str, start: int, end: int) -> bytes | None:
        content = self.objects.get(key)
        return None if content is None else content[start:end]

    def keys(self, folder: str) -> Sequence[str]:
        return [key for key in self.objects if key.startswith(folder + "/")]

    def folders(self, folder: str) -> Sequence[str]:
        return sorted({folder + key.removeprefix(folder).partition("/")[0] for key in self.objects})

    def delete(self, keys: Sequence[str]) -> None:
        for key in keys:
            self.objects.pop(key, None)
