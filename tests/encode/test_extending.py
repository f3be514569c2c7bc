"""The codec that docs/extending.md adds passes the gate, and is written there as it is here."""

import inspect
import re
from pathlib import Path

from pagefold.encode.choose import self_contained
from pagefold.encode.codec import Codec, Inner, common_prefix
from pagefold.encode.codec import decode as decode_self_contained
from pagefold.encode.codecs import INSIDE, TOP

DOCS = Path(__file__).parents[2] / "docs" / "extending.md"
INDENTED = "\n".join(f"        total[{month}] = sum_of(ledger, {month})" for month in range(30))


class IndentCodec(Codec):
    """indent: removes the indent that all lines share."""

    name = "indent"
    header = re.compile(r"\[all lines indented by (\d+)\]")

    def encode(self, text: str, inner: Inner) -> str | None:
        lines = text.split("\n")
        shared = common_prefix(lines)
        width = len(shared) - len(shared.lstrip(" "))
        if width < 4:
            return None
        return f"[all lines indented by {width}]\n" + inner("\n".join(line[width:] for line in lines))

    def decode(self, form: str, inner: Inner) -> str:
        header, body = self.opened(form)
        return "\n".join(" " * int(header[1]) + line for line in inner(body).split("\n"))


def test_the_codec_of_the_documentation_is_this_one() -> None:
    assert inspect.getsource(IndentCodec) in DOCS.read_text(encoding="utf-8")


def test_it_passes_the_gate_beside_the_other_codecs() -> None:
    codecs = (*TOP, IndentCodec())

    form, names = self_contained(INDENTED, [], codecs, (*INSIDE, IndentCodec()))

    assert (form.split("\n")[:2], names) == (["[all lines indented by 8]", "total[0] = sum_of(ledger, 0)"], ("indent",))
    assert decode_self_contained(form, codecs) == INDENTED
