"""The bundled programs."""
