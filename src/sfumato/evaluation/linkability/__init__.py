"""Find kept columns that would undo the anonymization.

linkable_columns  columns that are nearly unique, or nearly determine a quasi-identifier
identifiers       columns that are identifiers by their name or the form of their values
column_names      what the name of a column suggests, in four languages
value_forms       what values look like: forms of identifiers, words of demographic columns
column_facts      what a column holds: numbers, dates or text; how to read text
refusal           the refusal of such columns
"""
