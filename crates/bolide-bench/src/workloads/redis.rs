//! Redis: a string for each document, and for workloads that read ranges a sorted set for each partition. Every write is in its file, and synced, before its response.

use memchr::memmem;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::document::{at, document, id, partition};
use super::plan::{Operation, Workload};
use super::system::{Client, System};
use crate::Result;
use crate::redis::Redis;

const LINE_END: &[u8] = b"\r\n";

impl System for Redis {
    type Client = RedisClient;

    async fn set_up(&self, _workload: &Workload) -> Result<()> {
        Ok(())
    }

    async fn connect(&self, workload: &Workload) -> Result<RedisClient> {
        let stream = TcpStream::connect(self.address()).await?;
        stream.set_nodelay(true)?;
        Ok(RedisClient {
            stream,
            buffer: Vec::with_capacity(16 * 1024),
            ttl: workload.ttl,
            has_ranges: workload.reads_ranges(),
        })
    }

    fn pid(&self) -> u32 {
        Redis::pid(self)
    }
}

/// A connection.
pub struct RedisClient {
    stream: TcpStream,
    buffer: Vec<u8>,
    ttl: Option<i32>,
    has_ranges: bool,
}

/// A reply of the protocol.
#[derive(Debug, PartialEq, Eq)]
pub enum Reply {
    /// A line or a number, without its first byte.
    Line(String),
    /// A string; `None` if there is none.
    Text(Option<Vec<u8>>),
    Array(Vec<Reply>),
}

impl RedisClient {
    /// Sends commands together; returns the reply to the last one.
    async fn ask(&mut self, commands: &[Vec<&str>]) -> Result<Reply> {
        let bytes: Vec<u8> = commands.iter().flat_map(|command| encoded(command)).collect();
        self.stream.write_all(&bytes).await?;
        self.buffer.clear();
        let (mut at, mut replies) = (0, 0);
        loop {
            while let Some((reply, used)) = parse(&self.buffer[at..])? {
                at += used;
                replies += 1;
                if replies == commands.len() {
                    return Ok(reply);
                }
            }
            if self.stream.read_buf(&mut self.buffer).await? == 0 {
                return Err("Redis closed the connection".into());
            }
        }
    }

    async fn read(&mut self, key: u64) -> Result<u64> {
        let reply = self.ask(&[vec!["GET", &id(key)]]).await?;
        Ok(documents(&reply))
    }

    async fn write(&mut self, key: u64, version: u64) -> Result<u64> {
        let (id, set, at) = (id(key), partition(key), at(key).to_string());
        let document = document(key, version, self.ttl);
        let seconds = self.ttl.map(|seconds| seconds.to_string());
        let mut store = vec!["SET", &id, &document];
        if let Some(seconds) = &seconds {
            store.extend(["EX", seconds]);
        }
        let mut commands = vec![store];
        if self.has_ranges {
            commands.insert(0, vec!["MULTI"]);
            commands.push(vec!["ZADD", &set, &at, &id]);
            if let Some(seconds) = &seconds {
                commands.push(vec!["EXPIRE", &set, seconds]);
            }
            commands.push(vec!["EXEC"]);
        }
        self.ask(&commands).await?;
        Ok(0)
    }

    /// The documents of a range of a partition's sorted set.
    async fn range(&mut self, range: &[&str]) -> Result<u64> {
        let Reply::Array(ids) = self.ask(&[range.to_vec()]).await? else {
            return Err("Redis returned no range".into());
        };
        let ids: Vec<String> = ids.into_iter().filter_map(Reply::text).collect();
        let get = [vec!["MGET"], ids.iter().map(String::as_str).collect()].concat();
        let reply = self.ask(&[get]).await?;
        Ok(documents(&reply))
    }
}

impl Client for RedisClient {
    async fn perform(&mut self, operation: &Operation) -> Result<u64> {
        match *operation {
            Operation::Read { key } => self.read(key).await,
            Operation::Insert { key } => self.write(key, 0).await,
            Operation::Update { key, version } | Operation::Upsert { key, version } => self.write(key, version).await,
            Operation::ReadModifyWrite { key, version } => {
                let documents = self.read(key).await?;
                self.write(key, version).await?;
                Ok(documents)
            }
            Operation::Scan { from, items } => {
                // Times have the order of the ids.
                let (set, first, limit) = (partition(from), at(from).to_string(), items.to_string());
                self.range(&["ZRANGE", &set, &first, "+inf", "BYSCORE", "LIMIT", "0", &limit])
                    .await
            }
            Operation::Range { from, items } => {
                let (set, first, end) = (partition(from), at(from).to_string(), format!("({}", at(from + items)));
                self.range(&["ZRANGE", &set, &first, &end, "BYSCORE"]).await
            }
        }
    }
}

impl Reply {
    fn text(self) -> Option<String> {
        match self {
            Reply::Text(Some(text)) => String::from_utf8(text).ok(),
            _ => None,
        }
    }
}

/// The number of strings in a reply.
fn documents(reply: &Reply) -> u64 {
    match reply {
        Reply::Text(Some(_)) => 1,
        Reply::Array(replies) => replies.iter().map(documents).sum(),
        Reply::Text(None) | Reply::Line(_) => 0,
    }
}

fn encoded(command: &[&str]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", command.len()).into_bytes();
    for word in command {
        bytes.extend(format!("${}\r\n{word}\r\n", word.len()).as_bytes());
    }
    bytes
}

/// The first reply, and how many bytes it has; `None` while it is incomplete.
///
/// # Errors
/// If Redis refused a command, or the reply is malformed.
///
/// Source: Redis serialization protocol specification, version 2.
pub fn parse(bytes: &[u8]) -> Result<Option<(Reply, usize)>> {
    let Some(line_at) = memmem::find(bytes, LINE_END) else {
        return Ok(None);
    };
    let line = std::str::from_utf8(&bytes[1..line_at])?;
    let mut end = line_at + LINE_END.len();
    let reply = match bytes[0] {
        b'+' | b':' => Reply::Line(line.to_owned()),
        b'-' => return Err(format!("Redis refused: {line}").into()),
        b'$' if line == "-1" => Reply::Text(None),
        b'$' => {
            let from = end;
            end = from + line.parse::<usize>()? + LINE_END.len();
            match bytes.get(from..end) {
                Some(text) => Reply::Text(Some(text[..text.len() - LINE_END.len()].to_vec())),
                None => return Ok(None),
            }
        }
        b'*' => {
            let mut replies = Vec::new();
            for _ in 0..line.parse::<usize>()? {
                let Some((reply, used)) = parse(&bytes[end..])? else {
                    return Ok(None);
                };
                end += used;
                replies.push(reply);
            }
            Reply::Array(replies)
        }
        other => return Err(format!("a reply of type {other}").into()),
    };
    Ok(Some((reply, end)))
}

#[cfg(test)]
mod tests;
