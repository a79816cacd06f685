"""The built-in model: templates, typed slots, plain answers and follow-ups."""
