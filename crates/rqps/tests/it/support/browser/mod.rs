//! Opens a page in Chromium without a window, asks it questions, and hears what it complains of.
//! Use it with `mod browser;`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use base64::Engine;

/// Programs that are Chromium, by the name under which they are installed.
const NAMES: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

/// A Chromium that was found.
pub(crate) struct Browser {
    program: &'static str,
}

/// The result of opening a page.
pub(crate) struct Seen {
    /// The value of the script that asks the page.
    pub(crate) answer: serde_json::Value,
    /// Lines on the console, and faults of the page.
    pub(crate) console: Vec<String>,
}

impl Browser {
    /// `None` where no Chromium is installed.
    pub(crate) fn find() -> Option<Browser> {
        let runs = |program: &&'static str| {
            let version = Command::new(program).arg("--version").output();
            version.is_ok_and(|output| output.status.success())
        };
        NAMES.iter().find(|program| runs(program)).map(|program| Browser { program })
    }

    /// Opens `page` in a window of a width and asks it: `question` is the body of an async function
    /// that runs after the page is loaded and returns a value for JSON.
    pub(crate) fn ask(&self, page: &Path, width: u32, question: &str) -> Seen {
        let html = fs::read_to_string(page).expect("read the page");
        // Narrow windows are not to be had, narrow frames are: the page cannot tell.
        let probe = format!(
            "<script>addEventListener('load', async () => {{ let answer; try {{ answer = await \
             (async () => {{ {question} }})(); }} catch (fault) {{ answer = {{ fault: `${{fault}} \
             ${{fault.stack}}` }}; }} parent.postMessage(JSON.stringify(answer ?? null), '*'); \
             }});</script></body>"
        );
        let asked = page.with_file_name(format!("asked-{width}.html"));
        fs::write(&asked, with_script(&html, &probe)).expect("write");
        let frame = page.with_file_name(format!("frame-{width}.html"));
        let outer = format!(
            "<!doctype html><title>asking</title><body><script>addEventListener('message', \
             event => {{ const bytes = new TextEncoder().encode(event.data); \
             let binary = ''; bytes.forEach(byte => binary += String.fromCharCode(byte)); \
             document.body.textContent = `ANSWER:${{btoa(binary)}}:`; }});</script>\
             <iframe src=\"asked-{width}.html\" width=\"{width}\" height=\"900\" \
             style=\"border:0\"></iframe></body>"
        );
        fs::write(&frame, outer).expect("write");
        let output = self.run(&["--dump-dom", "--virtual-time-budget=20000"], &frame);
        for file in [asked, frame] {
            fs::remove_file(file).expect("remove");
        }
        Seen { answer: answer(&output), console: console(&output) }
    }

    /// Milliseconds from the first byte until the page is loaded and its overview drawn.
    pub(crate) fn load_milliseconds(&self, page: &Path) -> f64 {
        let html = fs::read_to_string(page).expect("read the page");
        let probe = "<script>addEventListener('load', () => console.log(`TIME:${performance.now()}:\
                     `));</script></body>";
        let timed = page.with_file_name("timed.html");
        fs::write(&timed, with_script(&html, probe)).expect("write");
        let said = console(&self.run(&["--dump-dom"], &timed));
        fs::remove_file(timed).expect("remove");
        let time = said.iter().find_map(|line| line.split("TIME:").nth(1)?.split(':').next());
        time.and_then(|time| time.parse().ok()).unwrap_or_else(|| panic!("no time in {said:?}"))
    }

    /// A picture of a page.
    pub(crate) fn picture(&self, page: &Path, width: u32, height: u32, into: &Path) {
        let size = format!("--window-size={width},{height}");
        let file = format!("--screenshot={}", into.display());
        self.run(&["--hide-scrollbars", "--virtual-time-budget=8000", &size, &file], page);
    }

    /// The page as it would be printed.
    pub(crate) fn print(&self, page: &Path, into: &Path) {
        let file = format!("--print-to-pdf={}", into.display());
        self.run(&["--no-pdf-header-footer", "--virtual-time-budget=8000", &file], page);
    }

    fn run(&self, words: &[&str], page: &Path) -> Output {
        let profile = tempfile::tempdir().expect("folder");
        let page: PathBuf = fs::canonicalize(page).expect("the page");
        Command::new(self.program)
            // Not as root: its sandbox needs rights that containers do not give.
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"])
            .args(["--no-first-run", "--enable-logging=stderr", "--v=0"])
            .arg("--host-resolver-rules=MAP * ~NOTFOUND")
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .args(words)
            .arg(format!("file://{}", page.display()))
            .stdin(Stdio::null())
            .output()
            .expect("start the browser")
    }
}

/// The page with a script at its end. The library has `</body>` in a string of its own.
fn with_script(html: &str, script: &str) -> String {
    let (page, end) = html.rsplit_once("</body>").expect("a page has a body");
    format!("{page}{script}{end}")
}

fn answer(output: &Output) -> serde_json::Value {
    let dom = String::from_utf8_lossy(&output.stdout);
    let encoded = dom.split("ANSWER:").nth(1).and_then(|rest| rest.split(':').next());
    let encoded = encoded.unwrap_or_else(|| panic!("no answer; the browser said {output:?}"));
    let bytes = base64::engine::general_purpose::STANDARD.decode(encoded).expect("base64");
    serde_json::from_slice(&bytes).expect("JSON")
}

/// Lines of the page's console; what the browser says of itself is left out.
fn console(output: &Output) -> Vec<String> {
    let text = String::from_utf8_lossy(&output.stderr);
    text.lines().filter(|line| line.contains(":CONSOLE")).map(str::to_owned).collect()
}
