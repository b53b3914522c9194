//! HTTP/1.1, just enough of it, with every fault.

use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::reply::{Body, Ending, Reply};
use super::{Protocol, Seen};

/// What becomes of a connection after a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum After {
    Keep,
    Close,
}

/// Reads the next request and its body as text; `None` when the client is gone.
pub async fn read(socket: &mut TcpStream, buffer: &mut Vec<u8>, connection: usize) -> Option<(Seen, String)> {
    let head_end = loop {
        if let Some(at) = buffer.windows(4).position(|window| window == b"\r\n\r\n") {
            break at;
        }
        more(socket, buffer).await?;
    };
    let head = String::from_utf8_lossy(&buffer[..head_end]).into_owned();
    let mut lines = head.split("\r\n");
    let target = lines.next()?.rsplit_once(' ')?.0.to_owned();
    let headers: Vec<_> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_lowercase(), value.trim().to_owned()))
        .collect();
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let length: usize = length.and_then(|(_, value)| value.parse().ok()).unwrap_or(0);
    let end = head_end + 4 + length;
    while buffer.len() < end {
        more(socket, buffer).await?;
    }
    let text = String::from_utf8_lossy(&buffer[head_end + 4..end]).into_owned();
    buffer.drain(..end);
    let body = serde_json::from_str(&text).unwrap_or(Value::Null);
    let seen = Seen { target, headers, body, connection };
    Some((seen, text))
}

async fn more(socket: &mut TcpStream, buffer: &mut Vec<u8>) -> Option<()> {
    let mut chunk = [0; 16 * 1024];
    let read = socket.read(&mut chunk).await.ok()?;
    buffer.extend_from_slice(&chunk[..read]);
    (read > 0).then_some(())
}

/// Writes a reply, as whole or as broken as it says.
pub async fn write(socket: &mut TcpStream, reply: &Reply, protocol: Protocol, streamed: bool) -> After {
    let Some(Body { content_type, chunks }) = reply.body(protocol, streamed) else {
        return After::Close;
    };
    let mut head = format!(
        "HTTP/1.1 {} Scripted\r\ncontent-type: {content_type}\r\ntransfer-encoding: chunked\r\nconnection: keep-alive\r\n",
        reply.status
    );
    for (name, value) in &reply.headers {
        head.extend([name.as_str(), ": ", value.as_str(), "\r\n"]);
    }
    head.push_str("\r\n");
    let steps = u32::try_from(chunks.len()).unwrap_or(u32::MAX).saturating_add(1);
    let pause = reply.over / steps;
    wait(pause).await;
    if socket.write_all(head.as_bytes()).await.is_err() {
        return After::Close;
    }
    let mut left = match reply.ending {
        Ending::CutAfter(bytes) | Ending::StallAfter(bytes) => bytes,
        Ending::Whole | Ending::CloseAfter => usize::MAX,
    };
    for chunk in chunks {
        wait(pause).await;
        let chunk = &chunk[..chunk.len().min(left)];
        left -= chunk.len();
        if !chunk.is_empty() && write_chunk(socket, chunk).await.is_err() {
            return After::Close;
        }
        if left == 0 {
            break;
        }
    }
    match reply.ending {
        Ending::CutAfter(_) => After::Close,
        Ending::StallAfter(_) => {
            // Until the client gives up.
            let _ = socket.read_u8().await;
            After::Close
        }
        Ending::CloseAfter => {
            let _ = socket.write_all(b"0\r\n\r\n").await;
            // The next request on this connection is read and never answered.
            let _ = socket.read_u8().await;
            After::Close
        }
        Ending::Whole => match socket.write_all(b"0\r\n\r\n").await {
            Ok(()) => {
                if let Some(sent) = &reply.sent {
                    sent.store(true, Ordering::SeqCst);
                }
                After::Keep
            }
            Err(_) => After::Close,
        },
    }
}

async fn wait(time: Duration) {
    // Even a sleep of nothing takes a millisecond.
    if !time.is_zero() {
        tokio::time::sleep(time).await;
    }
}

/// Each chunk is flushed on its own, so that the client can see it alone.
async fn write_chunk(socket: &mut TcpStream, chunk: &[u8]) -> std::io::Result<()> {
    let mut framed = format!("{:x}\r\n", chunk.len()).into_bytes();
    framed.extend_from_slice(chunk);
    framed.extend_from_slice(b"\r\n");
    socket.write_all(&framed).await?;
    socket.flush().await
}
