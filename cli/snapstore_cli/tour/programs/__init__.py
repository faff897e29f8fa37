"""Programs that the tour copies into its scratch folder, shows and runs."""
