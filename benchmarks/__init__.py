"""Measure what Sfumato costs and what it loses, one module per question. Start with ``python -m benchmarks``.

Every figure in README and docs is recorded here. To add one:

1. Write a module with ``run(options)``, which measures once and returns ``Table``s by name, and with a ``SECTION`` that
   says whether its figures depend on the load of the machine (``timed``), which parameters it has and which real tables
   it needs. Take sizes from ``options.sizes``, ``options.some`` and ``options.times``, so that ``--trial`` is quick.
   In a timed section ``Table.worst`` names the column that counts, for speed a ratio within the run. A section that is
   not timed has no seconds in its tables.
2. Name the section in ``sections.py``, and try it: ``python -m benchmarks NAME --trial``.
3. Put a marker where the figure belongs: ``<!-- figures: NAME.TABLE -->`` and ``<!-- end -->`` in lines of their own. A
   figure inside a sentence is a phrase, which ``SECTION.phrases`` makes from the rows of the tables.
4. ``make bench BENCH=NAME`` records the section in ``results/`` and fills the markers; ``python -m benchmarks docs``
   only fills them. ``tests/docs/test_figures.py`` compares the pages with the records.
"""
