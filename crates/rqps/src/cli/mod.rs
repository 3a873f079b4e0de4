//! The program: parses the command line, calls, prints. The only module that prints, exits or reads
//! the environment.

#[macro_use]
mod print;

mod args;
mod ask_password;
mod bisect;
mod block;
mod brought;
mod builds;
mod bundle;
mod check;
mod colour;
mod compared;
mod completion;
mod confirm;
mod doctor;
mod doctor_layout;
mod effect;
pub(crate) mod exit;
mod explain;
mod export;
mod folders;
mod forecast;
mod gap;
mod gate;
mod help;
mod hidden;
mod history;
mod hosts;
mod import;
mod init;
mod layout_tau;
mod measure;
mod own_workload;
mod parts;
mod plan_check;
mod plans;
mod program;
mod progress;
mod repeat;
mod report;
mod run;
mod site;
mod source_tree;
mod sweep;
mod target_settings;
mod vector;
mod workload_args;

pub(crate) use run::main;

#[cfg(test)]
mod tests;
