"""The reading test: exact questions about tool results, asked about the original and about its form.

`question` is what all kinds of questions share; `line_questions`, `data_questions` and `text_questions` make them from
the original alone; `cases` puts each into the conversation that it stands in; `asking` makes prompts and judges
answers; `figures` adds up who answered what.
"""
