//! The addresses of this machine: a sandbox must not reach its services, under whatever name.

use std::net::IpAddr;

use crate::diagnostic::{Diagnostic, Result};

/// All of them. Where the engine runs on another machine, they say nothing of that one.
pub(in crate::sandbox) fn addresses() -> Result<Vec<IpAddr>> {
    let interfaces = if_addrs::get_if_addrs().map_err(|error| {
        // Without them a name could lead to a service of this machine.
        Diagnostic::new("sandbox::no_gateway", "this machine's own addresses cannot be read")
            .cause(error)
            .help("a sandbox with a network must not reach them, so none is made; run it again")
    })?;
    let mut addresses: Vec<IpAddr> = interfaces.iter().map(if_addrs::Interface::ip).collect();
    addresses.sort();
    addresses.dedup();
    Ok(addresses)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_is_known() {
        assert!(addresses().is_ok_and(|addresses| addresses.iter().any(IpAddr::is_loopback)));
    }
}
