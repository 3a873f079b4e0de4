//! The program: parses the command line, calls, prints. The only module that prints, exits or reads
//! the environment.

#[macro_use]
mod print;

mod args;
mod ask_password;
mod bisect;
mod bisect_args;
mod block;
mod block_args;
mod brought;
mod builds;
mod bundle;
mod colour;
mod compared;
mod completion;
mod doctor;
mod doctor_layout;
mod doctor_measure;
#[cfg(test)]
mod documented;
mod effect;
mod execution_options;
pub(crate) mod exit;
mod explain;
mod export;
mod folder_args;
mod folders;
mod forecast;
mod gate;
mod global_args;
mod guest_load;
mod help;
mod hidden;
mod history;
mod history_args;
mod hosts;
mod import;
mod import_args;
mod init;
mod layout_tau;
mod manual;
mod measure;
mod own_workload;
mod program;
mod progress;
mod repeat;
mod report;
mod rule_args;
mod run;
mod run_args;
mod site;
mod site_args;
mod stop;
mod vector;
mod workload_args;

pub(crate) use run::main;
