"""How the adapter of the embedded model is trained. Nothing of it runs in the product; see assets/embedded_adapter."""
