"""Reproduce the figures of the four papers. Start with ``python -m reproduce``.

Each paper is a module, or a package of modules, with one function per figure. To add a figure:

1. Write ``run(size)``, which measures and returns a ``Result``: named tables of plain rows, the settings of the run,
   and in words how its sizes differ from those of the paper. ``size.of(tenth=..., quick=..., full=...)`` chooses by
   profile: ``tenth`` is what the tests run, ``quick`` is ``make reproduce``, ``full`` is the paper's own size.
   ``size.tables`` has the real and the generated tables. Seeds are fixed. Seconds are CPU seconds of this process
   (``reproduce/runs.py``), which has one thread.
2. Write ``draw(result)``, which returns the panels of the figure as pictures by letter, on the paper's axes. It sees
   nothing but the result, since pictures are also drawn from recorded ones. ``result.sizes`` is the subtitle.
3. List the claims: what the paper says, how its baseline is read here, and a judge, which looks at the result and says
   whether the claim holds (``reproduce/judging.py``).
4. Add the ``Figure`` to ``FIGURES`` of the paper, in the paper's order; ``reproduce/papers.py`` has the papers. Try it:
   ``python -m reproduce PAPER-NUMBER --profile tenth``, which prints the claims and records nothing.

A run records its result in ``results/PROFILE/`` and its pictures in ``pictures/PROFILE/``, and writes
``docs/papers.md``.
"""
