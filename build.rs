//! Builds the helper that runs inside containers, statically, for embedding.

use std::env;
use std::error::Error;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A helper needs no debug information and must be small: it is sent to engines.
const FLAGS: [&str; 9] = [
    "--edition=2024",
    "-Copt-level=s",
    "-Cpanic=abort",
    "-Ccodegen-units=1",
    "-Cstrip=symbols",
    "-Ctarget-feature=+crt-static",
    "-Crelocation-model=static",
    "--cap-lints=allow",
    "-Cembed-bitcode=yes",
];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=helper/src");
    println!("cargo::rerun-if-changed=build.rs");
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or("no OUT_DIR")?);
    let target = env::var("TARGET")?;
    let helper = out.join("helper");
    if env::var("CARGO_CFG_TARGET_OS")? == "linux" {
        compile(&target, &out, &["--crate-type=rlib", "--crate-name=tidemill_helper", "helper/src/lib.rs"])?;
        let library = format!("tidemill_helper={}", out.join("libtidemill_helper.rlib").display());
        let program = [
            "--crate-type=bin",
            "--crate-name=helper",
            "-Clto=fat",
            "--extern",
            &library,
            "helper/src/main.rs",
        ];
        compile(&target, &out, &program)?;
    } else {
        // Containers are Linux: on another system the embedded helper is empty, and plain exec serves.
        fs::write(&helper, "")?;
    }
    println!("cargo::rustc-env=TIDEMILL_HELPER={}", helper.display());
    Ok(())
}

fn compile(target: &str, out: &Path, arguments: &[&str]) -> Result<(), Box<dyn Error>> {
    let rustc = env::var_os("RUSTC").ok_or("no RUSTC")?;
    let mut command = Command::new(rustc);
    command.args(FLAGS).args(["--target", target, "--out-dir"]).arg(out).args(arguments);
    if let Some(linker) = env::var_os("RUSTC_LINKER") {
        let mut flag = OsStr::new("-Clinker=").to_owned();
        flag.push(linker);
        command.arg(flag);
    }
    let status = command.status()?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("the helper does not build: {command:?}: {status}").into())
    }
}
