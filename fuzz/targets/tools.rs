//! What programs print: package clients, git, ldconfig, servers, Slurm; files of the system.

use rqps_builds::fuzzing as obtain;
use rqps_dbms::fuzzing as dbms;
use rqps_host::{fuzzing as os, proc};
use rqps_lab::lab::fuzzing as lab;

use super::{file, text};

/// All of them on each text.
pub(super) fn tools(bytes: &[u8]) {
    let said = text(bytes);
    let _ = obtain::printed(&said);
    for line in said.lines() {
        let _ = (lab::queue_line(line), os::is_stop_order(line), proc::bracketed(line));
    }
    let _ = (os::user_of(&said, "postgres"), os::user_of(&said, "100"));
    let _ = dbms::server_log(&file("server.log", bytes));
    let _ = (proc::host_stat(&said), proc::process_stat(&said), proc::sched_stat(&said));
    let _ = (proc::disk_counters(&said, "sda"), proc::memory(&said), proc::cpu_info(&said));
    let _ =
        (proc::proportional_bytes(&said), proc::resident_bytes(&said), proc::pressure_us(&said));
    let mounts = proc::mounts(&said);
    let _ = proc::mount_of(&mounts, std::path::Path::new("/var/lib"));
}
