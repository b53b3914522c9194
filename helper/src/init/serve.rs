//! What the host asks for, and what it is told.

use std::collections::BTreeMap;
use std::time::Instant;

use crate::fields::{Malformed, Reader};
use crate::frame::Frame;
use crate::init::command::Running;
use crate::init::files::{Reading, Writing};
use crate::init::list::Listing;
use crate::init::outgoing::Outgoing;
use crate::init::untouched;
use crate::message::{Exit, Failed, How, List, Obstacle, Read, Start, VERSION, Write, kind};
use crate::sys::signal_number;

/// Whether the host follows a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Told {
    /// It has not asked since it came back.
    Nothing,
    /// Output as it comes.
    Output,
    /// All, and the end.
    All,
    /// It never will: the command goes away as soon as it has ended.
    Forgotten,
}

struct Followed {
    command: Running,
    told: Told,
}

/// Something that is told piece by piece.
enum Job {
    Reading(Reading),
    Listing(Listing),
}

/// All that is going on.
pub struct Served {
    /// The stream to the host.
    pub outgoing: Outgoing,
    commands: BTreeMap<u32, Followed>,
    jobs: BTreeMap<u32, Job>,
    writes: BTreeMap<u32, Writing>,
}

impl Served {
    /// Nothing yet.
    pub fn new(outgoing: Outgoing) -> Self {
        Self { outgoing, commands: BTreeMap::new(), jobs: BTreeMap::new(), writes: BTreeMap::new() }
    }

    /// Every command that is not forgotten.
    pub fn commands(&self) -> impl Iterator<Item = (&u32, &Running)> {
        self.commands.iter().map(|(id, followed)| (id, &followed.command))
    }

    /// Whether there are jobs that go on as soon as the host has read.
    pub fn has_more_to_say(&self) -> bool {
        !self.jobs.is_empty() && self.outgoing.pending().is_none()
    }

    /// Nobody is there. The oldest output is let go, so that the commands go on; what was asked for is not worth going
    /// on with.
    pub fn go_on_alone(&mut self) {
        self.jobs.clear();
        self.writes.clear();
        self.commands.values_mut().for_each(|followed| followed.command.kept.make_room());
    }

    /// Moves input and output. `told` are the commands whose supervisors have spoken.
    pub fn pump(&mut self, told: &[u32], now: Instant) {
        for (id, Followed { command, told: follows }) in &mut self.commands {
            command.pump();
            if *follows == Told::Forgotten {
                command.kept.let_go();
            }
            if told.contains(id) {
                command.hear();
            }
            command.settle();
            command.look_at_clock(now);
        }
        self.drop_forgotten();
    }

    /// Does what a frame asks for.
    pub fn hear(&mut self, frame: &Frame) {
        if self.follow(frame).is_err() {
            self.fail(
                frame.id,
                &Failed { obstacle: Obstacle::Refused, reason: "was asked for in other words".into() },
            );
        }
    }

    fn follow(&mut self, frame: &Frame) -> Result<(), Malformed> {
        let (id, payload) = (frame.id, frame.payload.as_slice());
        let mut reader = Reader::new(payload);
        match frame.kind {
            kind::HELLO => {
                let _version = reader.u32()?;
                self.jobs.clear();
                self.writes.clear();
                for followed in self.commands.values_mut().filter(|followed| followed.told != Told::Forgotten)
                {
                    followed.told = Told::Nothing;
                }
                let mut ready = reader.rest().to_vec();
                ready.extend_from_slice(&VERSION.to_le_bytes());
                self.say(kind::READY, 0, ready);
            }
            kind::START => self.start(id, &Start::decode(payload)?),
            kind::ATTACH => {
                let offset = reader.u64()?;
                match self.commands.get_mut(&id) {
                    Some(followed) => {
                        followed.command.kept.tell_from(offset);
                        followed.told = Told::Output;
                    }
                    None => self.fail(id, &missing("is not a command of this sandbox")),
                }
            }
            kind::FORGET => self.forget(id),
            kind::INPUT | kind::CLOSE_INPUT | kind::RESIZE | kind::SIGNAL | kind::TAKEN => {
                if let Some(followed) = self.commands.get_mut(&id) {
                    instruct(&mut followed.command, frame)?;
                }
            }
            kind::READ => match Reading::open(&Read::decode(payload)?) {
                Ok(reading) => drop(self.jobs.insert(id, Job::Reading(reading))),
                Err(failed) => self.fail(id, &failed),
            },
            kind::LIST => match Listing::open(&List::decode(payload)?) {
                Ok(listing) => drop(self.jobs.insert(id, Job::Listing(listing))),
                Err(failed) => self.fail(id, &failed),
            },
            kind::UNTOUCHED => match untouched::look() {
                Ok(()) => self.done(id, 0),
                Err(failed) => self.fail(id, &failed),
            },
            kind::WRITE => match Writing::begin(&Write::decode(payload)?, id) {
                Ok(writing) => drop(self.writes.insert(id, writing)),
                Err(failed) => self.fail(id, &failed),
            },
            kind::CHUNK => {
                if let Some(writing) = self.writes.get_mut(&id) {
                    writing.take(payload);
                }
            }
            kind::COMMIT => {
                // A write that has failed already has been answered.
                if let Some(writing) = self.writes.remove(&id) {
                    match writing.commit() {
                        Ok(bytes) => self.done(id, bytes),
                        Err(failed) => self.fail(id, &failed),
                    }
                }
            }
            kind::CANCEL => {
                self.jobs.remove(&id);
                self.writes.remove(&id);
            }
            kind::PING => self.say(kind::PONG, 0, Vec::new()),
            // A newer host's words are not for this helper.
            _ => {}
        }
        Ok(())
    }

    fn forget(&mut self, id: u32) {
        if let Some(followed) = self.commands.get_mut(&id) {
            followed.told = Told::Forgotten;
            followed.command.signal(signal_number::KILL);
        }
        self.drop_forgotten();
    }

    fn drop_forgotten(&mut self) {
        self.commands
            .retain(|_, followed| followed.told != Told::Forgotten || followed.command.exit.is_none());
    }

    fn start(&mut self, id: u32, start: &Start) {
        // A host that asks twice, not knowing whether it was heard, gets one command.
        if self.commands.contains_key(&id) {
            return;
        }
        match Running::start(start) {
            Ok(command) => drop(self.commands.insert(id, Followed { command, told: Told::Output })),
            Err(error) => {
                let how = How::NotStarted(error.raw_os_error().unwrap_or_default());
                let reason = format!("cannot be started: {error}");
                let exit = Exit { how, total: 0, lost: 0, out_of_memory: 0, reason };
                self.say(kind::EXIT, id, exit.encode());
            }
        }
    }

    /// Says what there is to say, as far as the stream takes it.
    pub fn tell_host(&mut self) {
        for (id, followed) in &mut self.commands {
            if followed.told != Told::Output {
                continue;
            }
            while !self.outgoing.is_full() {
                let Some(printed) = followed.command.kept.next() else {
                    break;
                };
                self.outgoing.say(&Frame::new(kind::OUTPUT, *id, printed.encode()));
            }
            if let Some(exit) = &followed.command.exit
                && followed.command.kept.is_told()
            {
                self.outgoing.say(&Frame::new(kind::EXIT, *id, exit.encode()));
                followed.told = Told::All;
            }
        }
        let ids: Vec<u32> = self.jobs.keys().copied().collect();
        for id in ids {
            while !self.outgoing.is_full() && self.jobs.contains_key(&id) {
                self.go_on(id);
            }
        }
    }

    fn go_on(&mut self, id: u32) {
        let Some(job) = self.jobs.get_mut(&id) else {
            return;
        };
        let step = match job {
            Job::Reading(reading) => reading.next().map(|piece| (kind::DATA, piece, reading.count())),
            Job::Listing(listing) => {
                listing.next().map(|entry| (kind::ENTRY, entry.map(|entry| entry.encode()), listing.count()))
            }
        };
        match step {
            Ok((kind, Some(payload), _)) => return self.say(kind, id, payload),
            Ok((_, None, count)) => self.done(id, count),
            Err(failed) => self.fail(id, &failed),
        }
        self.jobs.remove(&id);
    }

    fn say(&mut self, kind: u8, id: u32, payload: Vec<u8>) {
        self.outgoing.say(&Frame::new(kind, id, payload));
    }

    fn done(&mut self, id: u32, count: u64) {
        self.say(kind::DONE, id, count.to_le_bytes().to_vec());
    }

    fn fail(&mut self, id: u32, failed: &Failed) {
        self.say(kind::FAILED, id, failed.encode());
    }
}

fn instruct(command: &mut Running, frame: &Frame) -> Result<(), Malformed> {
    let mut reader = Reader::new(&frame.payload);
    match frame.kind {
        kind::INPUT => command.give(&frame.payload),
        kind::CLOSE_INPUT => command.close_input(),
        kind::RESIZE => command.resize(reader.u16()?, reader.u16()?),
        kind::SIGNAL => command.signal(i32::from(reader.u8()?)),
        kind::TAKEN => command.kept.taken(reader.u64()?),
        _ => {}
    }
    Ok(())
}

fn missing(reason: &str) -> Failed {
    Failed { obstacle: Obstacle::Missing, reason: reason.into() }
}
