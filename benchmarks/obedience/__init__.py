"""Does a model do as it is told? Prompts, edits and pairs of clips with checks that need no model to judge them."""
