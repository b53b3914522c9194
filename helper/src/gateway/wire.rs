//! What the frames between gateway and host mean.

/// Host: the policy, as text. The first frame of all.
pub const POLICY: u8 = 1;
/// Gateway: it listens.
pub const READY: u8 = 2;
/// Gateway: it cannot work; the payload says why.
pub const FAILED: u8 = 3;
/// Gateway: a decision and how often it was made so far.
pub const TALLY: u8 = 4;
/// Host: say all tallies and end.
pub const FINISH: u8 = 5;
/// Gateway: all is said.
pub const DONE: u8 = 6;
/// Gateway: a connection for the host to end, with its first bytes to follow; the payload is `name port`.
pub const OPEN: u8 = 7;
/// Both: bytes of a connection.
pub const DATA: u8 = 8;
/// Both: so many bytes (`u32 LE`) were taken, and as many more may come.
pub const CREDIT: u8 = 9;
/// Both: no more bytes come from this side.
pub const END: u8 = 10;
/// Both: the connection is over in both directions.
pub const ABORT: u8 = 11;

/// Bytes of one connection that may be on their way in one direction.
pub const WINDOW: usize = 256 * 1024;
/// Bytes of one [`DATA`] frame.
pub const PIECE: usize = 16 * 1024;
