"""Messages as plain text, for models that are asked about a session or scored on it: who speaks, and what."""

from pagefold.wire.message import BlockKind, Message, Role


def said(message: Message) -> str:
    """Returns a message as a part of a transcript."""
    return f"{heading(message.role)}\n{words(message)}"


def heading(role: Role) -> str:
    return "### tool result" if role is Role.TOOL else f"### {role}"


def words(message: Message) -> str:
    """Returns what a message says, without who says it. A call is its name and its arguments."""
    if message.role is Role.TOOL:
        return message.text
    return "\n".join(
        f"calls {block.name} {block.text}" if block.kind is BlockKind.CALL else block.text for block in message.blocks
    )
