//! An entry for the fuzz targets (`fuzz/`): expressions of a script of somebody else's, evaluated.
//! Nothing else calls it.

use super::evaluate::Evaluation;
use super::variables::Variables;
use rqps_model::datagen::xoroshiro::Xoroshiro128;
use rqps_text::pgbench::{PgbenchAction, PgbenchProgram};

/// Evaluates every expression of a script once.
pub fn evaluate(program: &PgbenchProgram, names: &[String]) {
    let mut variables = Variables::new(names.len());
    let random = &mut Xoroshiro128::seeded(7);
    for command in &program.commands {
        match &command.action {
            PgbenchAction::Set { variable, value } => {
                let found = Evaluation { variables: &variables, names, random }.value(value);
                if let Ok(value) = found {
                    variables.set(*variable, value);
                }
            }
            PgbenchAction::JumpUnless { condition, .. } => {
                let _ = Evaluation { variables: &variables, names, random }.holds(condition);
            }
            _ => {}
        }
    }
}
