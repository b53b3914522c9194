//! The conductor: prepare, loop, check, repair, publish.
