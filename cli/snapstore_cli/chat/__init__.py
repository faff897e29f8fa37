"""Talking to an agent: who answers, what is saved when, and what can be typed."""
