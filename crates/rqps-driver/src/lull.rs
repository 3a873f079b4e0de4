//! Pauses before each counted statement until the server waits for it. A server that finds the next
//! statement at once skips the instructions of waiting, so without the pause counts would vary.

use std::thread;
use std::time::{Duration, Instant};

use rqps_host::tree;

/// Time between two looks at the server. Under valgrind, a server often needs less time from its
/// reply until it waits again.
const LOOK: Duration = Duration::from_micros(100);

/// Length of the pause if the server's thread is unknown.
const UNSEEN: Duration = Duration::from_millis(1);

/// Longest pause: afterwards the client sends its statement even if the thread still works.
const LONGEST: Duration = Duration::from_secs(1);

/// A pause until the server's process or thread sleeps.
pub(super) fn wait_until_server_sleeps(server: Option<u32>) -> Box<dyn FnMut() + Send> {
    let Some(server) = server else { return Box::new(|| thread::sleep(UNSEEN)) };
    Box::new(move || {
        let end = Instant::now() + LONGEST;
        loop {
            thread::sleep(LOOK);
            // If the process has ended, the statement fails and reports it.
            let works = tree::stat_of(server).is_ok_and(|stat| stat.state != 'S');
            if !works || Instant::now() > end {
                return;
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader};
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_pause_lasts_until_the_server_sleeps() {
        let mut command = Command::new("sh");
        // Works until its input ends, then sleeps.
        command.args(["-c", "echo; i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; read line"]);
        let mut server = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(server.stdout.take().unwrap()).read_line(&mut line).unwrap();
        wait_until_server_sleeps(Some(server.id()))();
        let cpu = tree::stat_of(server.id()).map(|stat| (stat.state, stat.user + stat.system));
        drop(server.stdin.take());
        server.wait().unwrap();
        let (state, ticks) = cpu.unwrap();
        assert!(state == 'S' && ticks > 0, "{state} after {ticks} ticks");
    }

    #[test]
    fn nobody_waits_for_a_server_that_has_gone() {
        let mut server = Command::new("true").spawn().unwrap();
        server.wait().unwrap();
        wait_until_server_sleeps(Some(server.id()))();
        wait_until_server_sleeps(None)();
    }
}
