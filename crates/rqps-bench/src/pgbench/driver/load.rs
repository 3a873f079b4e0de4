//! Creates and fills the standard tables like `pgbench -i`.

use std::io::Write;
use std::time::Instant;

use crate::pgbench::schema::{
    ACCOUNTS, BRANCHES, FILLED, FilledTable, InitStep, RowForm, TABLES, TELLERS, init,
};
use rqps_driver::Stop;
use rqps_driver::connection::{Connection, Connector};
use rqps_driver::control_channel::ControlChannel;
use rqps_driver::event::DriverEvent;
use rqps_driver::loaders::{COPY_BYTES, speed_up};
use rqps_driver::request::{DriverRequest, RequestBody};
use rqps_host::tree;
use rqps_model::benchmark::{BenchmarkParameters, LoadBody, Workload};
use rqps_model::dialect::Dialect;
use rqps_model::pgbench::PgbenchLoad;

/// Rows per INSERT.
const ROWS: u64 = 1000;

/// INSERTs per transaction.
const INSERTS: u64 = 50;

/// The first Postgres version for which pgbench asks COPY to freeze rows.
const FREEZES: u32 = 14;

/// The load for a workload.
pub(crate) fn load(_: Dialect, workload: &Workload, storage_engine: Option<&str>) -> RequestBody {
    let load = match &workload.shape {
        BenchmarkParameters::Pgbench(shape) => PgbenchLoad {
            scale: shape.scale,
            tables: shape.tables.clone(),
            storage_engine: storage_engine.map(str::to_owned),
        },
        _ => PgbenchLoad::default(),
    };
    RequestBody::LoadOwn(LoadBody::Pgbench(load))
}

/// Carries out a load.
pub(crate) fn own_load(
    request: &DriverRequest,
    load: &LoadBody,
    control: &mut ControlChannel<&mut dyn Write>,
) -> Result<(), Stop> {
    let LoadBody::Pgbench(load) = load else {
        return Err(Stop::Fault("failed to load: it is no load of pgbench".to_owned()));
    };
    let (begun, cpu) = (Instant::now(), tree::own_cpu());
    let rows =
        if load.tables.made { (BRANCHES + TELLERS + ACCOUNTS) * u64::from(load.scale) } else { 0 };
    let mut load_seconds = 0.0;
    if load.tables.made {
        let connector = Connector::new(request)?;
        let mut session = connector.open(0)?;
        speed_up(request.dialect, &mut session)?;
        for step in init(request.dialect, load) {
            carry_out(&step, (request, load), (&connector, &mut session), control)?;
            if step == InitStep::Fill {
                load_seconds = begun.elapsed().as_secs_f64();
            }
        }
    }
    let all = begun.elapsed().as_secs_f64();
    if load_seconds == 0.0 {
        load_seconds = all;
    }
    let index_seconds = all - load_seconds;
    let client_cpu = tree::own_cpu().since(cpu);
    control.send(&DriverEvent::Loaded { rows, load_seconds, index_seconds, client_cpu })?;
    Ok(())
}

fn carry_out(
    step: &InitStep,
    (request, load): (&DriverRequest, &PgbenchLoad),
    (connector, session): (&Connector, &mut Connection),
    control: &mut ControlChannel<&mut dyn Write>,
) -> Result<(), Stop> {
    let fault = |sql: &str, error| Stop::Fault(format!("failed to execute {sql:?}: {error}"));
    match step {
        InitStep::Make(sql) => {
            connector.make(session, sql).map_err(|error| fault(sql, error))?;
        }
        // MySQL's ANALYZE returns rows.
        InitStep::Run(sql) if request.dialect == Dialect::Mysql => {
            session.rows(sql).map_err(|error| fault(sql, error))?;
        }
        InitStep::Run(sql) => {
            session.simple(sql).map_err(|error| fault(sql, error))?;
        }
        InitStep::Fill => {
            control
                .send(&DriverEvent::Loading { rows: 0, of: ACCOUNTS * u64::from(load.scale) })?;
            match request.dialect {
                Dialect::Postgres => copy_all(load, session)?,
                _ => insert_all(load, session, control)?,
            }
        }
    }
    Ok(())
}

fn execute(session: &mut Connection, sql: &str) -> Result<(), String> {
    let done = session.simple(sql).map(drop);
    done.map_err(|error| format!("failed to execute {sql:?}: {error}"))
}

/// Loads all rows in one transaction.
fn copy_all(load: &PgbenchLoad, session: &mut Connection) -> Result<(), String> {
    let server = session.postgres("copies rows").map_err(|error| error.to_string())?;
    let digits = |text: &str| text.split(|c: char| !c.is_ascii_digit()).next().map(str::to_owned);
    let version = digits(server.server_version()).and_then(|number| number.parse().ok());
    let freezes = load.tables.partitions == 0 && version.unwrap_or(0) >= FREEZES;
    execute(session, "begin")?;
    execute(session, &format!("truncate table {}", TABLES.join(", ")))?;
    for table in &FILLED {
        // pgbench freezes the accounts: the only table with a filled filler.
        copy(session, table, freezes && table.has_filler, table.rows * u64::from(load.scale))?;
    }
    execute(session, "commit")
}

fn copy(
    session: &mut Connection,
    table: &FilledTable,
    freezes: bool,
    rows: u64,
) -> Result<(), String> {
    // With the filler, all columns have values.
    let columns = if table.has_filler { String::new() } else { format!(" ({})", table.columns) };
    let option = if freezes { " with (freeze on)" } else { "" };
    let sql = format!("copy {}{columns} from stdin{option}", table.name);
    let (mut next, mut text) = (1, String::new());
    let copied = session.copy_in(&sql, &mut |out| {
        text.clear();
        while next <= rows && text.len() < COPY_BYTES {
            table.write(&mut text, next, &RowForm::COPY);
            next += 1;
        }
        out.extend_from_slice(text.as_bytes());
        next <= rows
    });
    match copied {
        Ok(count) if count == rows => Ok(()),
        Ok(count) => Err(format!("{count} of {rows} rows arrived of {sql:?}")),
        Err(error) => Err(format!("failed to execute {sql:?}: {error}")),
    }
}

/// Loads all rows as multi-row INSERTs.
fn insert_all(
    load: &PgbenchLoad,
    session: &mut Connection,
    control: &mut ControlChannel<&mut dyn Write>,
) -> Result<(), Stop> {
    let of = ACCOUNTS * u64::from(load.scale);
    for table in &FILLED {
        let rows = table.rows * u64::from(load.scale);
        execute(session, "BEGIN")?;
        let (mut next, mut statements) = (1, 0);
        while next <= rows {
            let mut sql = format!("INSERT INTO {} ({}) VALUES ", table.name, table.columns);
            let last = rows.min(next + ROWS - 1);
            for id in next..=last {
                if id > next {
                    sql.push(',');
                }
                table.write(&mut sql, id, &RowForm::VALUES);
            }
            let sent = session.simple(&sql).map(drop);
            sent.map_err(|error| format!("failed to fill {}: {error}", table.name))?;
            next = last + 1;
            statements += 1;
            if statements % INSERTS == 0 {
                execute(session, "COMMIT")?;
                control.send(&DriverEvent::Loading { rows: last, of })?;
                execute(session, "BEGIN")?;
            }
        }
        execute(session, "COMMIT")?;
    }
    Ok(())
}
