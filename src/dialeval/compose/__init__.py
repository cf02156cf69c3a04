"""Several metrics as one: weights over sub-metrics, fitted on what people said (CRS)."""
