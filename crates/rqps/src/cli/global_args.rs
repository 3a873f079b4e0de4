//! Options of every command, and the commands about the command line itself.

use std::path::PathBuf;

use clap::{Args, ColorChoice, ValueEnum};
use clap_complete::engine::ArgValueCompleter;

use crate::cli::completion::{self, Shell};

/// Heading of the help.
const GLOBAL: &str = "All commands";

#[derive(Debug, Args)]
pub(super) struct GlobalArgs {
    /// Form of the progress on stderr [default: a bar on a terminal, else plain lines]
    #[arg(long, global = true, value_enum, value_name = "FORM", help_heading = GLOBAL)]
    pub progress: Option<ProgressForm>,
    /// Print no progress and no notes: only the result, and errors
    #[arg(short, long, global = true, conflicts_with = "progress", help_heading = GLOBAL)]
    pub quiet: bool,
    /// Colours of the text report [default: on a terminal, unless NO_COLOR is set]
    #[arg(long, global = true, value_enum, value_name = "WHEN", help_heading = GLOBAL)]
    #[arg(default_value = "auto", hide_default_value = true)]
    pub color: ColorChoice,
}

/// The form of progress messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum ProgressForm {
    /// A moving line
    Bar,
    /// Lines
    Plain,
    /// One JSON object per line, for programs (docs/command_line.md)
    Json,
    /// Nothing
    None,
}

#[derive(Debug, Args)]
pub(super) struct HelpWords {
    /// A topic or a command [default: list the topics]
    #[arg(value_name = "TOPIC", add = ArgValueCompleter::new(completion::topics))]
    pub topic: Option<String>,
}

#[derive(Debug, Args)]
pub(super) struct Completions {
    /// The shell
    #[arg(value_enum)]
    pub shell: Shell,
}

#[derive(Debug, Args)]
pub(super) struct Man {
    /// The folder for the pages; it is made if it is not there
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
}
