//! `rqps help`: topics with examples; of a command, its long help.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use clap::Command;

use crate::cli::exit;

/// A topic: its name, what it is about, its text.
const TOPICS: [(&str, &str, &str); 7] = [
    ("targets", "how to name a build or a server", include_str!("help/targets.txt")),
    (
        "benchmarks",
        "what rqps can run, and how to choose steps",
        include_str!("help/benchmarks.txt"),
    ),
    ("blocks", "how long to measure, and how targets take turns", include_str!("help/blocks.txt")),
    ("verdicts", "what SLOWER, SAME and INCONCLUSIVE mean", include_str!("help/verdicts.txt")),
    ("why", "from a slower step to the function", include_str!("help/why.txt")),
    ("ci", "how to stop a regression in a CI job", include_str!("help/ci.txt")),
    ("environment", "variables, folders and exit codes", include_str!("help/environment.txt")),
];

/// Topics and commands, for completion.
pub(super) fn topics() -> impl Iterator<Item = &'static str> {
    TOPICS.iter().map(|(name, ..)| *name).chain(["compare", "count", "report", "gate", "bisect"])
}

/// `rqps help [TOPIC]`.
pub(super) fn explain(mut all: Command, topic: Option<&str>) -> Result<u8> {
    let Some(topic) = topic else {
        out!("Usage: rqps help TOPIC\n\nTopics:");
        for (name, about, _) in TOPICS {
            out!("  {name:<12} {about}");
        }
        out!("\nFor a command, such as compare: rqps help compare. All commands: rqps --help");
        return Ok(exit::FINE);
    };
    if let Some((.., text)) = TOPICS.iter().find(|(name, ..)| *name == topic) {
        out!("{}", text.trim_end());
        return Ok(exit::FINE);
    }
    all.build();
    let Some(command) = all.find_subcommand_mut(topic).filter(|command| !command.is_hide_set())
    else {
        let topics: Vec<_> = TOPICS.iter().map(|(name, ..)| *name).collect();
        bail!(
            "explain `{topic}`: no such topic or command\nhint: topics are {}; `rqps --help` lists \
             commands",
            topics.join(", ")
        );
    };
    out!("{}", command.render_long_help());
    Ok(exit::FINE)
}

/// `rqps man DIR`.
pub(super) fn write_manual(command: Command, folder: &Path) -> Result<u8> {
    let doing = || format!("write manual pages into {}", folder.display());
    fs::create_dir_all(folder).with_context(doing)?;
    clap_mangen::generate_to(command, folder).with_context(doing)?;
    info!("rqps: wrote manual pages into {}", folder.display());
    Ok(exit::FINE)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::args::Arguments;

    #[test]
    fn every_example_is_a_command_line_that_rqps_accepts() {
        let mut seen = 0;
        for (name, _, text) in TOPICS {
            for line in text.lines() {
                let Some(words) = line.strip_prefix("    rqps ") else { continue };
                let words = words.split('#').next().unwrap_or_default().split_whitespace();
                let words = std::iter::once("rqps").chain(words);
                if let Err(error) = Arguments::try_parse_from(words) {
                    panic!("{name}: {line}: {error}");
                }
                seen += 1;
            }
            assert!(text.lines().all(|line| line.chars().count() <= 100), "{name}");
        }
        assert!(seen > 20, "{seen}");
    }
}
