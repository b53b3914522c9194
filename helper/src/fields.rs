//! Payloads field by field.

/// A payload that does not say what it should.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Malformed;

/// Writes fields one after the other.
#[derive(Debug, Default)]
pub struct Fields(Vec<u8>);

impl Fields {
    /// One byte.
    pub fn u8(&mut self, value: u8) -> &mut Self {
        self.rest(&[value])
    }

    /// Two bytes.
    pub fn u16(&mut self, value: u16) -> &mut Self {
        self.rest(&value.to_le_bytes())
    }

    /// Four bytes.
    pub fn u32(&mut self, value: u32) -> &mut Self {
        self.rest(&value.to_le_bytes())
    }

    /// Four bytes with a sign.
    pub fn i32(&mut self, value: i32) -> &mut Self {
        self.rest(&value.to_le_bytes())
    }

    /// Eight bytes.
    pub fn u64(&mut self, value: u64) -> &mut Self {
        self.rest(&value.to_le_bytes())
    }

    /// Bytes with their length.
    pub fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.u32(u32::try_from(bytes.len()).unwrap_or(u32::MAX)).rest(bytes)
    }

    /// A list of bytes with its length.
    pub fn list(&mut self, items: &[Vec<u8>]) -> &mut Self {
        self.u32(u32::try_from(items.len()).unwrap_or(u32::MAX));
        for item in items {
            self.bytes(item);
        }
        self
    }

    /// Bytes to the end of the payload.
    pub fn rest(&mut self, bytes: &[u8]) -> &mut Self {
        self.0.extend_from_slice(bytes);
        self
    }

    /// The payload.
    pub fn done(self) -> Vec<u8> {
        self.0
    }
}

/// Reads fields one after the other.
#[derive(Debug)]
pub struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    /// From the start of a payload.
    pub fn new(payload: &'a [u8]) -> Self {
        Self(payload)
    }

    fn array<const LENGTH: usize>(&mut self) -> Result<[u8; LENGTH], Malformed> {
        let (array, rest) = self.0.split_first_chunk::<LENGTH>().ok_or(Malformed)?;
        self.0 = rest;
        Ok(*array)
    }

    /// One byte.
    pub fn u8(&mut self) -> Result<u8, Malformed> {
        self.array::<1>().map(|[byte]| byte)
    }

    /// Two bytes.
    pub fn u16(&mut self) -> Result<u16, Malformed> {
        self.array().map(u16::from_le_bytes)
    }

    /// Four bytes.
    pub fn u32(&mut self) -> Result<u32, Malformed> {
        self.array().map(u32::from_le_bytes)
    }

    /// Four bytes with a sign.
    pub fn i32(&mut self) -> Result<i32, Malformed> {
        self.array().map(i32::from_le_bytes)
    }

    /// Eight bytes.
    pub fn u64(&mut self) -> Result<u64, Malformed> {
        self.array().map(u64::from_le_bytes)
    }

    /// Bytes with their length.
    pub fn bytes(&mut self) -> Result<&'a [u8], Malformed> {
        let length = self.u32()? as usize;
        let (bytes, rest) = self.0.split_at_checked(length).ok_or(Malformed)?;
        self.0 = rest;
        Ok(bytes)
    }

    /// A list of bytes with its length.
    pub fn list(&mut self) -> Result<Vec<Vec<u8>>, Malformed> {
        let length = self.u32()?;
        // The length is not trusted with memory: every item takes four bytes at least.
        (0..length).map(|_| self.bytes().map(<[u8]>::to_vec)).collect()
    }

    /// Bytes to the end of the payload.
    pub fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.0)
    }

    /// Makes sure that nothing is left over.
    pub fn end(self) -> Result<(), Malformed> {
        if self.0.is_empty() { Ok(()) } else { Err(Malformed) }
    }
}
