//! Turns, tools, budget and transcript.
