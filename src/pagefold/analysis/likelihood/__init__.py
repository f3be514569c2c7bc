"""How likely a session's recorded next answers are to a model, by what the model was given to read before them.

`turns` makes the contexts: the history as recorded, what policies would have sent, and the plain end of the history cut
to the size of what the last policy sent. `scores` asks a model for every one; `figures` adds up, paired by turn.
"""
