"""Drawing and pages; all numbers are computed elsewhere."""
