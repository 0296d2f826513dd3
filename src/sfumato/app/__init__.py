"""``sfumato app``: a local page on which a steward goes from a raw table to a release.

It decides nothing that the policy does not hold: it writes the policy, starts runs under it, and shows what they found.

server         start and stop: the address with its token, idle shut-down
application    addresses and answers
access         who gets in: host, token, cookie, and the sign of every change
data_folder    tables under the folder; nothing outside it
durable_files  files that survive the end of the process at any moment
project        a table, its policy with history, its runs and releases
background_run a run in a process of its own, and how it is found again
worker         that process
run_kinds      what can be run
preview        the first rows of a table, without reading all of it
view           what a screen knows when it is drawn
frame          what all screens have around them
forms          the elements of forms
column_hierarchy  the values of a column with their records, and its tree
selected_column   the column whose hierarchy is looked at
screens        one module for each step
"""
