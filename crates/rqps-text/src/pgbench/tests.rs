//! Scripts become commands, or say what is wrong with them.

use super::*;

fn program(text: &str) -> (PgbenchProgram, VariableNames) {
    let mut names = VariableNames::default();
    let program = PgbenchProgram::read(text, &mut names).unwrap();
    (program, names)
}

/// The messages of a script, with `:name` for variables.
fn messages(text: &str) -> Vec<String> {
    let (program, names) = program(text);
    let whole = |sql: &PgbenchSql| {
        let piece = |piece: &SqlPiece| match piece {
            SqlPiece::Sql(text) => text.clone(),
            SqlPiece::Variable(number) => format!(":{}", names.all()[*number as usize]),
        };
        sql.pieces.iter().map(piece).collect::<String>()
    };
    program.statements().map(whole).collect()
}

#[test]
fn commands_end_where_pgbench_ends_them() {
    let check = |text: &str, want: &[&str]| assert_eq!(messages(text), want, "{text}");
    check("SELECT 1;\nSELECT 2;\n", &["SELECT 1;", "SELECT 2;"]);
    check("-- a comment\n  SELECT 1", &["SELECT 1"]);
    check("SELECT 1 \\; SELECT 2;", &["SELECT 1 ; SELECT 2;"]);
    check("SELECT ';', \":x\", $$;$$; SELECT 2;", &["SELECT ';', \":x\", $$;$$;", "SELECT 2;"]);
    check("SELECT (1; 2);", &["SELECT (1; 2);"]);
    check("SELECT 1 -- a;\n, 2;", &["SELECT 1 -- a;\n, 2;"]);
    check("SELECT a\\:\\:int;", &["SELECT a::int;"]);
    check("SELECT :x AS a \\gset p_\nSELECT :p_a;", &["SELECT :x AS a ", "SELECT :p_a;"]);
    check("/* :y */ SELECT 1;", &["/* :y */ SELECT 1;"]);
}

#[test]
fn branches_become_jumps() {
    let text = "\\if :a\nSELECT 1;\n\\elif :b\nSELECT 2;\n\\else\nSELECT 3;\n\\endif\nSELECT 4;\n";
    let (program, _) = program(text);
    let shown: Vec<String> = program
        .commands
        .iter()
        .map(|command| match &command.action {
            PgbenchAction::JumpUnless { otherwise, .. } => format!("unless {otherwise}"),
            PgbenchAction::Jump(target) => format!("jump {target}"),
            PgbenchAction::Sql(sql) => sql.text.clone(),
            other => format!("{other:?}"),
        })
        .collect();
    assert_eq!(
        shown,
        [
            "unless 3", "SELECT 1;", "jump 7", "unless 6", "SELECT 2;", "jump 7", "SELECT 3;",
            "SELECT 4;"
        ]
    );
    let lines: Vec<u32> = program.commands.iter().map(|command| command.line).collect();
    assert_eq!(lines, [1, 2, 3, 3, 4, 5, 6, 8]);
}

#[test]
fn lines_are_continued_and_times_have_units() {
    let (program, names) = program("\\set a 1 + \\\n  2\n\\sleep 5ms\n\\sleep :a us\n\\sleep 1\n");
    assert_eq!(names.all(), ["a"]);
    let sleeps: Vec<_> = program
        .commands
        .iter()
        .filter_map(|command| match command.action {
            PgbenchAction::Sleep { time, unit_us } => Some((time, unit_us)),
            _ => None,
        })
        .collect();
    use PgbenchSleep::{Fixed, Variable};
    assert_eq!(sleeps, [(Fixed(5), 1000), (Variable(0), 1), (Fixed(1), 1_000_000)]);
    assert_eq!(program.commands[1].line, 3);
}

#[test]
fn what_cannot_be_read_is_said_with_its_place() {
    let check = |text: &str, want: &str| {
        let fault = PgbenchProgram::read(text, &mut VariableNames::default()).unwrap_err();
        assert!(fault.to_string().contains(want), "{fault}\n  instead of {want}");
    };
    check("SELECT 1;\n\\setshell a b\n", "line 2, column 1: `\\setshell` runs a program");
    check("\\setrandom aid 1 :n", "write `\\set aid random(1, :n)`");
    check("\\setrandom a 1 9 gaussian 2.0", "`\\set a random_gaussian(1, 9, 2.0)`");
    check("\\foo", "line 1, column 1: pgbench has no `\\foo`; there are \\set, \\sleep");
    check("\\set 1a 5", "line 1, column 6: `1a` is not a name of a variable");
    check("\\set", "the name of a variable must follow `\\set`");
    check("\\set a", "line 1, column 7: a value, not the end of the line");
    check("\\set a 1 +", "a value, not the end of the line");
    check("\\set a 1 2", "line 1, column 10: an operator or the end of the line, not `2`");
    check("\\set a foo(1)", "`foo` is no function; there are abs, debug");
    check("\\set a random(1)", "line 1, column 8: `random` takes 2 arguments, not 1");
    check("\\set a (1", "`)`, not the end of the line");
    check("\\set a 9223372036854775808", "is no whole number of 64 bits");
    check("\\set a 1 < 2 < 3", "comparisons do not follow each other");
    check("\\set a case when 1 then 2", "WHEN, ELSE or END, not the end of the line");
    check("\\set a 'x'", "`'` means nothing in an expression");
    check("\\if 1\nSELECT 1;", "line 1, column 1: this \\if has no \\endif");
    check("\\else", "`\\else` without `\\if`");
    check("\\if 1\n\\else\n\\elif 1\n\\endif", "line 3, column 1: `\\elif` after `\\else`");
    check("\\endif", "`\\endif` without `\\if`");
    check("\\gset", "`\\gset` must follow an SQL command");
    check("SELECT 1 AS a \\gset\n\\gset", "line 2, column 1: `\\gset` must follow an SQL command");
    let branch = "SELECT 1 AS a;\n\\if 1\nSELECT 2;\n\\endif\n\\gset";
    check(branch, "`\\gset` must follow an SQL command");
    check("SELECT 1 \\gset a b", "takes one prefix, not `b` too");
    check("\\sleep", "a time must follow `\\sleep`");
    check("\\sleep abc", "a time must be a whole number or a variable, not `abc`");
    check("\\sleep 5 h", "line 1, column 10: the unit must be us, ms or s, not `h`");
    check("\\startpipeline\nSELECT 1;", "line 1, column 1: this pipeline has no `\\endpipeline`");
    check("\\endpipeline", "`\\endpipeline` without `\\startpipeline`");
    check("\\startpipeline\nSELECT 1 AS a \\gset\n\\endpipeline", "not allowed in a pipeline");
    check(&format!("\\set x 1{}", "+1".repeat(2000)), "more than 1000 operators");
    check("SELECT 'a", "the script ends within a text in quotes");
    check("COPY t FROM stdin;", "COPY moves data that a script does not have");
    check("-- nothing\n", "the script holds no command");
}
