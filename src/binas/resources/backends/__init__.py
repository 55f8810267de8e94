"""How modules are run; here only what exporting them needs."""
