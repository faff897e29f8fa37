"""Object stores for the tests, and what can be put in front of them."""
