"""Listeners from Hugging Face, through transformers."""
