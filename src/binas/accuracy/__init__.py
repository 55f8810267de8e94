"""Measuring what each design choice contributes to accuracy, and architectures to judge that by."""
