"""Looking at a finished release from outside: what holds, and what it cost."""
