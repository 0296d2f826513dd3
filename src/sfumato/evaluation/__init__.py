"""Evaluate a finished release from outside: whether it meets its policy, and how much information it lost."""
