//! The scripts of a step, read once for all clients, and the initial state of each client.

use super::variables::Variables;
use rqps_model::datagen::xoroshiro::Xoroshiro128;
use rqps_model::dialect::Dialect;
use rqps_model::pgbench::{PgbenchProtocol, PgbenchWork};
use rqps_text::pgbench::PgbenchValue::Integer;
use rqps_text::pgbench::{PgbenchAction, PgbenchProgram, PgbenchSql, SqlPiece, VariableNames};

/// Mask of the seed: as many bits as the real program's option shows unambiguously.
const SEED: u64 = (1 << 31) - 1;

/// Shared by the clients.
pub(super) struct StepScripts {
    pub(super) scripts: Vec<CompiledScript>,
    /// Cumulative weights of the scripts.
    pub(super) sums: Vec<i64>,
    pub(super) names: VariableNames,
    pub(super) work: PgbenchWork,
    /// The number for `--random-seed` with which the real program draws the same values.
    pub(super) seed: u64,
    /// Generators by client: for functions, and for the choice of scripts.
    generators: Vec<[Xoroshiro128; 2]>,
    default_seed: i64,
}

/// A script.
pub(super) struct CompiledScript {
    pub(super) name: String,
    pub(super) program: PgbenchProgram,
    /// By command: the message with placeholders, if the protocol has them.
    pub(super) messages: Vec<Option<Message>>,
    /// By command: true for a statement that changes rows.
    pub(super) changes: Vec<bool>,
}

/// A message with separate values.
pub(super) struct Message {
    pub(super) sql: String,
    /// Variables by number, one per placeholder.
    pub(super) values: Vec<u32>,
}

impl StepScripts {
    /// Reads the scripts of a step for this number of clients.
    ///
    /// # Errors
    ///
    /// A script is invalid; a checked plan has none.
    pub(super) fn read(
        work: &PgbenchWork,
        dialect: Dialect,
        seed: u64,
        clients: u32,
    ) -> Result<StepScripts, String> {
        let mut names = VariableNames::default();
        let (mut scripts, mut sums, mut sum) = (Vec::new(), Vec::new(), 0);
        for script in &work.scripts {
            let program = PgbenchProgram::read(&script.text, &mut names)
                .map_err(|fault| format!("failed to read {}, {fault}", script.name))?;
            let message = |action: &PgbenchAction| match action {
                PgbenchAction::Sql(sql) if work.protocol != PgbenchProtocol::Simple => {
                    Some(Message::of(sql, dialect))
                }
                _ => None,
            };
            let messages = program.commands.iter().map(|one| message(&one.action)).collect();
            let changes = program.commands.iter().map(|one| changes_rows(&one.action)).collect();
            let name = script.name.clone();
            scripts.push(CompiledScript { name, program, messages, changes });
            sum += i64::from(script.weight);
            sums.push(sum);
        }
        let seed = seed & SEED;
        // Like pgbench with one thread per client.
        let mut base = Xoroshiro128::seeded(seed);
        let functions: Vec<Xoroshiro128> = (0..clients).map(|_| base.branch()).collect();
        let default_seed =
            if work.define.contains_key("default_seed") { 0 } else { base.next_u64() as i64 };
        let generators = functions.into_iter().map(|functions| {
            let choice = base.branch();
            // Draws that pgbench uses for its throttle and its samples.
            let _ = (base.next_u64(), base.next_u64());
            [functions, choice]
        });
        let generators = generators.collect();
        let work = work.clone();
        Ok(StepScripts { scripts, sums, names, work, seed, generators, default_seed })
    }

    /// The generators of a client: for functions, and for the choice of scripts.
    pub(super) fn generators(&self, client: u32) -> [Xoroshiro128; 2] {
        self.generators[client as usize]
    }

    /// The initial variables of a client.
    pub(super) fn variables(&self, client: u32) -> Variables {
        let mut variables = Variables::new(self.names.all().len());
        let own = [
            ("client_id", i64::from(client)),
            ("default_seed", self.default_seed),
            ("random_seed", self.seed as i64),
        ];
        for (name, value) in own {
            if let Some(number) = self.names.find(name) {
                variables.set(number, Integer(value));
            }
        }
        for (name, text) in &self.work.define {
            if let Some(number) = self.names.find(name) {
                variables.set_text(number, text.as_bytes());
            }
        }
        variables
    }
}

impl Message {
    fn of(sql: &PgbenchSql, dialect: Dialect) -> Message {
        let mut message = Message { sql: String::new(), values: Vec::new() };
        for piece in &sql.pieces {
            match piece {
                SqlPiece::Sql(text) => message.sql.push_str(text),
                SqlPiece::Variable(number) => {
                    message.values.push(*number);
                    match dialect {
                        Dialect::Postgres => {
                            message.sql.push_str(&format!("${}", message.values.len()));
                        }
                        _ => message.sql.push('?'),
                    }
                }
            }
        }
        message
    }
}

/// True for a statement that changes rows, by its first word.
fn changes_rows(action: &PgbenchAction) -> bool {
    let PgbenchAction::Sql(sql) = action else { return false };
    let first = sql.text.split(' ').next().unwrap_or_default();
    let words = ["INSERT", "UPDATE", "DELETE", "MERGE", "REPLACE"];
    words.iter().any(|word| first.eq_ignore_ascii_case(word))
}
