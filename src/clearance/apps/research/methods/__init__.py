"""The methods that a research plan may use: a card says what one needs and gives, a template does it.

A card is a TOML file in `cards/`; its template is the module of the same name in `templates/`. Every template
has one function:

    run(inputs: Mapping[str, bytes], params: Mapping[str, Any]) -> Produced

- `inputs` has the bytes of each input by the name that the card gives it; they were read once, and are the
  bytes whose hash was cleared. An optional input that was not given is not in the mapping.
- `params` fit the card's JSON Schema, and have its defaults filled in.
- `Produced` has the output files by the names on the card, one sentence, the numbers that the sentence and a
  report may quote, and warnings. The same inputs and parameters give the same bytes: no clock, no chance, no
  network, no files. Lists are sorted; numbers that are not whole are rounded as the module's docstring says.
- What is wrong with an input or a parameter raises `InvalidInputError`, naming the input, never its content.

The docstring of each template describes the JSON that it gives. Positions count from 1 and include both ends
everywhere; a strand is "+" or "-", and positions on "-" are those of the sequence as it was given.
"""
