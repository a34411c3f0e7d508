"""From rows to what people read: coherence tables in a terminal, in Markdown and in CSV. Reads runs, starts nothing."""
