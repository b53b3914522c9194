//! Sandboxes as hardened Docker containers, through bollard.
