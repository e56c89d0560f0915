"""Forms for the arguments of a call, made from its tool's schema: what nobody touches stays as it is."""
