"""Language models and encoders."""
