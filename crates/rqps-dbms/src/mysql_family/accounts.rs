//! The account of clients on other hosts.

use crate::connection::ControlConnection;
use rqps_model::dialect::Dialect;
use rqps_model::sql_name::Literal;
use rqps_wire::WireError;

/// Its name.
pub(super) const USER: &str = "rqps";

/// Makes the account that enters by TCP with this password, and drops all others that TCP leads
/// to: the files that make a data folder have some without a password.
pub(super) fn admit(session: &mut dyn ControlConnection, password: &str) -> Result<(), WireError> {
    let rows = session.rows("SELECT user, host FROM mysql.user WHERE host <> 'localhost'")?;
    let text = |text: &str| Literal::quoted(Dialect::Mysql, text);
    for row in rows {
        let [Some(user), Some(host)] = row.as_slice() else { continue };
        session.run(&format!("DROP USER {}@{}", text(user), text(host)))?;
    }
    // The server writes no passwords into its logs.
    session.run(&format!("CREATE USER '{USER}'@'%' IDENTIFIED BY {}", text(password)))?;
    session.run(&format!("GRANT ALL PRIVILEGES ON *.* TO '{USER}'@'%'"))
}
