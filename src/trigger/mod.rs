//! What starts runs: the drop folder.
