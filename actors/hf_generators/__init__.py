"""Generators and editors from Hugging Face, through diffusers and transformers."""
