"""The rules of redaction and how they are run; `canonical.redact` is what others use."""
