"""The words of the field as frozen values: no I/O, no vendors, nothing that changes in place."""
