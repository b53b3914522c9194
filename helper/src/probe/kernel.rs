//! Calls that only the machine's owner may make, and calls that holes in kernels are reached by.

use super::attempt::{all_refused, refused};
use super::{Asked, Held, Probe};
use crate::sys::probe as sys;

pub(super) const PROBES: &[Probe] = &[
    Probe::new("kernel/modules", "No kernel module can be loaded or unloaded.", modules),
    Probe::new("kernel/other-kernel", "No other kernel can be readied.", other_kernel),
    Probe::new("kernel/restart", "The machine cannot be restarted.", restart),
    Probe::new("kernel/programs", "No program can be loaded into the kernel (bpf).", programs),
    Probe::new(
        "kernel/performance-events",
        "The kernel's performance events, which can spy on others, are closed.",
        performance_events,
    ),
    Probe::new("kernel/keyrings", "The kernel's keyrings, which containers share, are closed.", keyrings),
    Probe::new(
        "kernel/page-faults",
        "A command cannot handle page faults of its own (userfaultfd).",
        page_faults,
    ),
    Probe::new("kernel/rings", "No requests can be made past the filter of calls (io_uring).", rings),
    Probe::new("kernel/time", "The machine's time cannot be set.", time),
    Probe::new("kernel/log", "The kernel's log cannot be read.", log),
    Probe::new("kernel/swap", "The machine cannot be made to swap.", swap),
    Probe::new("kernel/accounting", "Accounting of processes cannot be changed.", accounting),
    Probe::new("kernel/ports", "The machine's input and output ports are closed.", ports),
    Probe::new("kernel/watch-files", "A command cannot watch every file of the machine.", watch_files),
    Probe::new("kernel/name", "The machine cannot be renamed.", name),
];

fn modules(_: &Asked) -> Held {
    all_refused([("init_module", sys::load_module()), ("delete_module", sys::unload_module())])
}

fn other_kernel(_: &Asked) -> Held {
    refused(sys::load_kernel())
}

fn restart(_: &Asked) -> Held {
    refused(sys::restart())
}

fn programs(_: &Asked) -> Held {
    refused(sys::make_bpf_map())
}

fn performance_events(_: &Asked) -> Held {
    refused(sys::open_performance_event())
}

fn keyrings(_: &Asked) -> Held {
    all_refused([("add_key", sys::add_key()), ("keyctl", sys::session_keyring())])
}

fn page_faults(_: &Asked) -> Held {
    refused(sys::handle_faults())
}

fn rings(_: &Asked) -> Held {
    refused(sys::make_ring())
}

fn time(_: &Asked) -> Held {
    refused(sys::set_time_zone())
}

fn log(_: &Asked) -> Held {
    refused(sys::read_kernel_log())
}

fn swap(_: &Asked) -> Held {
    refused(sys::swap_on())
}

fn accounting(_: &Asked) -> Held {
    refused(sys::account())
}

#[cfg(target_arch = "x86_64")]
fn ports(_: &Asked) -> Held {
    refused(sys::raise_io_privilege())
}

#[cfg(not(target_arch = "x86_64"))]
fn ports(_: &Asked) -> Held {
    Ok("this machine has none".to_owned())
}

fn watch_files(_: &Asked) -> Held {
    refused(sys::watch_all_files())
}

fn name(_: &Asked) -> Held {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    refused(sys::rename_machine(name.trim()))
}
