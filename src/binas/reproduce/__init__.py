"""The paper's tables and figures, made again of a run of one's own: ``binas reproduce``.

One module per experiment, named as the command names it. An experiment looks at a :class:`Study` (a run, a preset, a
folder) and gives back rows, a picture's numbers and a sentence; :mod:`binas.reproduce.studies` keeps them as files and as
one page.
"""
