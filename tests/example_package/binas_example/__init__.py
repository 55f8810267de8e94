"""One thing of each kind that a package can add to binas, as small as it can be."""
