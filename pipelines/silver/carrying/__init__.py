"""Points at which a rebuild of a classic group may resume, and its state there if it is not at rest."""
