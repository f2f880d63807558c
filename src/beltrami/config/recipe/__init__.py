"""Recipes: complete settings by dataset."""
