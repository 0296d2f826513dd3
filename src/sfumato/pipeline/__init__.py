"""One run, whatever the engine: plan, prepare, run, release."""
