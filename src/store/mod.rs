//! What must not be forgotten: the ledger of inputs, the runs, their events, and blobs.
