"""Estimators and learned predictors of accuracy, and how well they rank."""
