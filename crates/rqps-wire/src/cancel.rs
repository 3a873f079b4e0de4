//! Ends the statement that another session executes: a server that nobody reads from goes on with
//! it.

use std::time::Duration;

use crate::WireError;
use crate::mysql::MysqlClient;
use crate::postgres::PostgresClient;
use rqps_model::endpoint::{Address, Login};

/// A session whose statement can be ended.
#[derive(Clone)]
pub struct Canceller {
    address: Address,
    login: Login,
    session: Session,
}

#[derive(Clone)]
enum Session {
    /// Whether it is encrypted, its number, and its key.
    Postgres(bool, u32, Vec<u8>),
    /// The server, and its number there.
    Mysql(String, u64),
}

/// The server that answers. Proxies may lead each connection to another one, where a number is that
/// of somebody else's session.
const SERVER: &str = "SELECT CONCAT(@@hostname, ':', @@port, ':', @@datadir)";

impl Canceller {
    /// For a session of Postgres at this address.
    pub fn of_postgres(client: &PostgresClient, address: &Address, login: &Login) -> Canceller {
        let key = client.cancel_key().to_vec();
        let session = Session::Postgres(client.is_encrypted(), client.connection_id(), key);
        Canceller { address: address.clone(), login: login.clone(), session }
    }

    /// For a session of MySQL; `None` if a proxy hides its number.
    pub fn of_mysql(
        client: &mut MysqlClient,
        address: &Address,
        login: &Login,
    ) -> Option<Canceller> {
        let server = single(client, SERVER)?;
        let id = single(client, "SELECT CONNECTION_ID()")?.parse().ok()?;
        let is_known = id == u64::from(client.connection_id());
        let session = Session::Mysql(server, id);
        is_known.then(|| Canceller { address: address.clone(), login: login.clone(), session })
    }

    /// Ends its statement, if it executes one.
    ///
    /// # Errors
    /// The server does not answer within `limit`.
    pub fn cancel(&self, limit: Duration) -> Result<(), WireError> {
        let (server, id) = match &self.session {
            Session::Postgres(encrypted, id, key) => {
                return PostgresClient::cancel(&self.address, *encrypted, *id, key, limit);
            }
            Session::Mysql(server, id) => (server, *id),
        };
        let mut client = MysqlClient::connect(&self.address, &self.login, limit)?;
        client.set_read_timeout(Some(limit))?;
        if single(&mut client, SERVER).as_ref() == Some(server) {
            client.simple(&format!("KILL QUERY {id}")).map(drop)
        } else {
            Ok(())
        }
    }
}

fn single(client: &mut MysqlClient, sql: &str) -> Option<String> {
    client.rows(sql).ok()?.into_iter().flatten().flatten().next()
}
