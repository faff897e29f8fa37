"""The guided tour: a story that is run, not told, in a scratch folder."""
