//! The kernel's windows under `/proc`.

use std::fs;
use std::io::{BufRead as _, BufReader};

use super::attempt::{none_listable, none_readable, none_writable};
use super::{Asked, Held, Probe};

pub(super) const PROBES: &[Probe] = &[
    Probe::new("proc/sysrq", "The machine cannot be restarted or crashed through /proc.", sysrq),
    Probe::new(
        "proc/settings",
        "No setting of the kernel can be changed: not what it runs on a crash, not modules, not formats.",
        settings,
    ),
    Probe::new("proc/memory", "The kernel's memory cannot be read.", memory),
    Probe::new("proc/symbols", "The kernel's addresses are hidden.", symbols),
    Probe::new("proc/masked", "What tells of the whole machine is masked.", masked),
    Probe::new("proc/first-process", "The first process's memory and environment are closed.", first_process),
    Probe::new("proc/other-processes", "No process of the host is to be seen.", other_processes),
];

fn sysrq(_: &Asked) -> Held {
    none_writable(&["/proc/sysrq-trigger", "/proc/sys/kernel/sysrq"])
}

fn settings(_: &Asked) -> Held {
    none_writable(&[
        "/proc/sys/kernel/core_pattern",
        "/proc/sys/kernel/modprobe",
        "/proc/sys/kernel/hostname",
        "/proc/sys/kernel/randomize_va_space",
        "/proc/sys/kernel/yama/ptrace_scope",
        "/proc/sys/fs/binfmt_misc/register",
        "/proc/sys/fs/suid_dumpable",
        "/proc/sys/vm/overcommit_memory",
        "/proc/sys/vm/drop_caches",
        "/proc/sys/net/ipv4/ip_forward",
        "/proc/irq/default_smp_affinity",
    ])
}

fn memory(_: &Asked) -> Held {
    none_readable(&["/proc/kcore", "/proc/kpagecount", "/proc/kpageflags", "/proc/vmallocinfo", "/proc/kmsg"])
}

fn symbols(_: &Asked) -> Held {
    let Ok(file) = fs::File::open("/proc/kallsyms") else {
        return Ok("the list cannot be opened".to_owned());
    };
    let told =
        BufReader::new(file).lines().map_while(Result::ok).take(1000).find(|line| {
            line.split(' ').next().is_some_and(|address| address.chars().any(|digit| digit != '0'))
        });
    match told {
        Some(line) => Err(line),
        None => Ok("all are zero".to_owned()),
    }
}

fn masked(_: &Asked) -> Held {
    none_readable(&[
        "/proc/keys",
        "/proc/latency_stats",
        "/proc/timer_list",
        "/proc/timer_stats",
        "/proc/sched_debug",
    ])?;
    none_listable(&["/proc/acpi", "/proc/scsi", "/proc/asound", "/sys/firmware"])
}

fn first_process(_: &Asked) -> Held {
    none_readable(&["/proc/1/environ", "/proc/1/mem", "/proc/1/maps", "/proc/1/auxv", "/proc/1/stack"])
}

fn other_processes(asked: &Asked) -> Held {
    const HOSTS: [&str; 6] = ["kthreadd", "systemd", "dockerd", "containerd", "containerd-shim", "podman"];
    let mut count = 0_u64;
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        if !entry.file_name().to_string_lossy().chars().all(|digit| digit.is_ascii_digit()) {
            continue;
        }
        count += 1;
        let name = fs::read_to_string(entry.path().join("comm")).unwrap_or_default();
        if HOSTS.contains(&name.trim()) {
            return Err(format!("{} is there", name.trim()));
        }
    }
    if asked.pids > 0 && count > asked.pids {
        Err(format!("{count} processes"))
    } else {
        Ok(format!("{count} in all"))
    }
}
