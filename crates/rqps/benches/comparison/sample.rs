//! The result of one run of either program.

use std::fs;

use rqps_host::proc;
use rqps_model::run::CpuTime;

/// One measured window of one program.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sample {
    /// Statements per second, including BEGIN and COMMIT.
    pub(crate) qps: f64,
    /// CPU time of the client process per statement, microseconds.
    pub(crate) cpu: CpuTime,
    /// Context switches of the whole host per statement.
    pub(crate) switches: f64,
    /// Statements that the server refused.
    pub(crate) errors: u64,
    /// Writes that matched no row, as a share of all statements; sysbench counts them with BEGIN as
    /// `other`.
    pub(crate) others: f64,
    /// Failures such as a thread that could not be pinned.
    pub(crate) notes: Vec<String>,
}

/// Costs of a window, before division by its statements.
pub(crate) struct Used {
    pub(crate) statements: f64,
    pub(crate) seconds: f64,
    pub(crate) cpu: CpuTime,
    pub(crate) switches: u64,
    pub(crate) others: u64,
}

impl Used {
    pub(crate) fn sample(self, errors: u64, notes: Vec<String>) -> Sample {
        let per = |amount: f64| amount / self.statements.max(1.0);
        Sample {
            qps: self.statements / self.seconds,
            cpu: CpuTime { user_us: per(self.cpu.user_us), system_us: per(self.cpu.system_us) },
            switches: per(self.switches as f64),
            errors,
            others: per(self.others as f64),
            notes,
        }
    }
}

/// Context switches of the host since boot; 0 if unknown.
pub(crate) fn switches() -> u64 {
    let text = fs::read_to_string("/proc/stat").unwrap_or_default();
    proc::host_stat(&text).map_or(0, |stat| stat.context_switches)
}
