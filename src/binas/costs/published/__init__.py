"""Published networks as references: built, scaled, counted and measured here."""
