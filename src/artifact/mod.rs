//! From files in the sandbox to files in the outbox: stage, hash, publish, receipt.
