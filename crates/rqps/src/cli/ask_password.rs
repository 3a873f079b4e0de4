//! Prompts on the terminal, without echo, for a password that no file and no variable has.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::time::Duration;

use anyhow::{Context, Result};
use rustix::termios::{
    LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr,
};

use crate::cli::folders;
use rqps_lab::plan::Plan;
use rqps_model::build::BuildSource;
use rqps_model::dialect::Dialect;
use rqps_model::escape;
use rqps_wire::WireError;
use rqps_wire::dsn::Dsn;
use rqps_wire::mysql::MysqlClient;
use rqps_wire::password::{self, TypedPasswords};
use rqps_wire::postgres::PostgresClient;

/// Time limit for connecting.
const CONNECT: Duration = Duration::from_secs(20);

/// Prompts for each password that a server of the plan requires and no file or variable has.
/// Returns them by DSN. Without a terminal it does not prompt, and the runs fail with a message.
///
/// # Errors
/// The terminal cannot be used.
pub(super) fn of_plan(plan: &Plan) -> Result<TypedPasswords> {
    let mut passwords = TypedPasswords::default();
    let Ok(mut terminal) = open_terminal() else { return Ok(passwords) };
    for target in &plan.targets {
        let BuildSource::Dsn(text) = &target.source else { continue };
        // A wrong DSN is reported when it is measured.
        let Ok(known) = password::known(text, &folders::variable) else { continue };
        if passwords.of(text).is_none()
            && let Some(password) = ask(&known.dsn, &mut terminal)?
        {
            passwords.add(text, password);
        }
    }
    Ok(passwords)
}

/// Prompts for the password of one server.
///
/// # Errors
///
/// The terminal cannot be used.
pub(super) fn of_server(dsn: &mut Dsn) -> Result<()> {
    let Ok(mut terminal) = open_terminal() else { return Ok(()) };
    if let Some(password) = ask(dsn, &mut terminal)? {
        dsn.login.password = password;
    }
    Ok(())
}

fn open_terminal() -> io::Result<File> {
    OpenOptions::new().read(true).write(true).open("/dev/tty")
}

/// Prompts if the server requires a password.
fn ask(dsn: &Dsn, terminal: &mut File) -> Result<Option<String>> {
    let (address, login) = (&dsn.address, &dsn.login);
    if !login.password.is_empty() {
        return Ok(None);
    }
    let tried = match dsn.dialect() {
        Dialect::Mysql => MysqlClient::connect(address, login, CONNECT).map(drop),
        _ => PostgresClient::connect(address, login, CONNECT).map(drop),
    };
    match tried {
        Err(WireError::NoPassword { .. }) => {
            let prompt = format!("Password for user {} at {address}: ", login.user);
            let prompt = escape::line(&prompt);
            typed(terminal, &prompt).context("ask for a password on the terminal")
        }
        // Any other fault is reported when the server is measured.
        Ok(()) | Err(_) => Ok(None),
    }
}

/// Reads a line without echo; `None` if it is empty.
fn typed(terminal: &mut File, prompt: &str) -> io::Result<Option<String>> {
    let quiet = Quiet::begin(terminal)?;
    terminal.write_all(prompt.as_bytes())?;
    let line = line(&mut &quiet.terminal);
    drop(quiet);
    terminal.write_all(b"\n")?;
    Ok(Some(line?).filter(|line| !line.is_empty()))
}

/// Reads a line byte by byte, so that the input after it stays for the next reader.
fn line(keys: &mut dyn Read) -> io::Result<String> {
    const INTERRUPT: u8 = 3;
    const END: u8 = 4;
    const BACKSPACE: u8 = 8;
    const KILL: u8 = 21;
    const DELETE: u8 = 127;
    let mut line = Vec::new();
    let mut byte = [0];
    while keys.read(&mut byte)? == 1 {
        match byte[0] {
            b'\n' | b'\r' | END => break,
            INTERRUPT => return Err(io::Error::other("interrupted")),
            // A letter may have several bytes; all but its first begin with the bits 10.
            BACKSPACE | DELETE => while line.pop().is_some_and(|byte| byte & 0xc0 == 0x80) {},
            KILL => line.clear(),
            other => line.push(other),
        }
    }
    String::from_utf8(line)
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error.utf8_error()))
}

/// A terminal without echo until this value is dropped.
struct Quiet {
    terminal: File,
    before: Termios,
}

impl Quiet {
    fn begin(terminal: &File) -> io::Result<Quiet> {
        let terminal = terminal.try_clone()?;
        let before = tcgetattr(&terminal)?;
        let mut quiet = before.clone();
        // Signals are off too: one that ended rqps here would leave the terminal without echo.
        quiet.local_modes -= LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG;
        quiet.special_codes[SpecialCodeIndex::VMIN] = 1;
        quiet.special_codes[SpecialCodeIndex::VTIME] = 0;
        tcsetattr(&terminal, OptionalActions::Flush, &quiet)?;
        Ok(Quiet { terminal, before })
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        // The terminal is gone, so there is no place to report it.
        tcsetattr(&self.terminal, OptionalActions::Now, &self.before).ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_can_be_corrected() {
        let check = |keys: &[u8], wanted: &str| {
            assert_eq!(line(&mut &*keys).expect("a line"), wanted, "{keys:?}");
        };
        check(b"secret\nrest", "secret");
        check(b"no\x15yes\r", "yes");
        check("aé\x7fb\n".as_bytes(), "ab");
        check(b"\x08\x04", "");
        let error = line(&mut &b"x\x03"[..]).expect_err("interrupted");
        assert_eq!(error.to_string(), "interrupted");
    }
}
