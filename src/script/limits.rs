//! What a script may use: memory, instructions, time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use mlua::{HookTriggers, Lua, VmState};

use super::raised::Raised;

/// What loading a script or calling one of its functions may use.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// Lua instructions.
    pub(super) instructions: u64,
    /// Wall time.
    pub(super) wall: Duration,
}

impl Limits {
    /// Loading declares things; a second of work is a mistake.
    pub(super) const LOAD: Self = Self {
        instructions: 20_000_000,
        wall: Duration::from_secs(5),
    };
    /// A function may read a whole input: 200 instructions for each of a million rows.
    pub(super) const HOOK: Self = Self {
        instructions: 200_000_000,
        wall: Duration::from_secs(20),
    };
}

/// Bytes a Lua state may hold: rows are streamed, so this is far above what checks need.
pub(super) const MEMORY: usize = 64 << 20;

/// How often the budget is looked at, in instructions: rare enough to cost nothing, often enough to be exact.
const STRIDE: u32 = 1_000;

/// What is left of the limits of the work going on now.
#[derive(Debug)]
pub(super) struct Budget {
    started: Instant,
    left: AtomicU64,
    /// Milliseconds after `started`.
    deadline: AtomicU64,
    tripped: AtomicBool,
}

impl Budget {
    /// A budget of nothing; see [`Budget::start`].
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self {
            started: Instant::now(),
            left: AtomicU64::new(0),
            deadline: AtomicU64::new(0),
            tripped: AtomicBool::new(false),
        })
    }

    /// Work begins that may use `limits`.
    pub(super) fn start(&self, limits: Limits) {
        let deadline = self.started.elapsed() + limits.wall;
        self.left.store(limits.instructions, Ordering::SeqCst);
        self.deadline.store(millis(deadline), Ordering::SeqCst);
        self.tripped.store(false, Ordering::SeqCst);
    }

    /// Nobody waits for the work any more: it ends at the next look.
    pub(super) fn cancel(&self) {
        self.deadline.store(0, Ordering::SeqCst);
    }

    /// Whether the time is up: for Rust code that Lua calls and that may take long.
    pub(super) fn check_time(&self) -> Result<(), Raised> {
        if millis(self.started.elapsed()) > self.deadline.load(Ordering::SeqCst) {
            self.tripped.store(true, Ordering::SeqCst);
            return Err(Raised::limit("it ran for too long"));
        }
        Ok(())
    }

    /// Counts `stride` instructions.
    fn spend(&self, stride: u64) -> Result<(), Raised> {
        if self.tripped.load(Ordering::SeqCst) {
            return Err(Raised::limit("it did too much work"));
        }
        let left = self.left.load(Ordering::SeqCst);
        self.left.store(left.saturating_sub(stride), Ordering::SeqCst);
        if left < stride {
            self.tripped.store(true, Ordering::SeqCst);
            return Err(Raised::limit("it did too much work"));
        }
        self.check_time()
    }

    /// Makes `lua` look at this budget, also in coroutines: they inherit the hook of the thread that makes them.
    ///
    /// `pcall` catches the error like any other, so from the first trip on the hook fires at every instruction:
    /// whoever catches it gets no further.
    pub(super) fn watch(self: &Arc<Self>, lua: &Lua) -> mlua::Result<()> {
        self.arm(lua, STRIDE)
    }

    fn arm(self: &Arc<Self>, lua: &Lua, stride: u32) -> mlua::Result<()> {
        let budget = Arc::clone(self);
        let triggers = HookTriggers::new().every_nth_instruction(stride);
        lua.set_global_hook(triggers, move |lua, _| {
            budget.spend(stride.into()).map_err(|raised| {
                // Arming cannot fail for memory: it replaces a callback.
                let _ = budget.arm(lua, 1);
                raised.here(lua)
            })?;
            Ok(VmState::Continue)
        })
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
