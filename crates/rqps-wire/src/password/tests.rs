//! Tests of the sources of logins.

use super::*;

fn password(dsn: &str, variables: &[(&str, &str)]) -> Result<String, PasswordError> {
    Ok(completed(dsn, variables)?.dsn.login.password)
}

fn completed(dsn: &str, variables: &[(&str, &str)]) -> Result<Known, PasswordError> {
    known(dsn, &|name: &str| {
        let found = variables.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| (*value).to_owned())
    })
}

fn home(file: &str, text: &str, mode: u32) -> tempfile::TempDir {
    let home = tempfile::tempdir().expect("a folder");
    let path = home.path().join(file);
    fs::write(&path, text).expect("write");
    fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("chmod");
    home
}

#[test]
fn a_password_comes_from_where_the_own_client_takes_it() {
    let dsn = "postgres://me@db:5433/app";
    assert_eq!(password(dsn, &[]).expect("none"), "");
    assert_eq!(password(dsn, &[("PGPASSWORD", "env")]).expect("variable"), "env");
    let with = "postgres://me:own@db/app";
    assert_eq!(password(with, &[("PGPASSWORD", "env")]).expect("the DSN's own"), "own");
    let text = "# comment\nother:*:*:me:no\ndb:5433:app:me:a\\:b\\\\c:d\n*:*:*:*:last\n";
    let home_of_files = home(".pgpass", text, 0o600);
    let folder = home_of_files.path().to_str().expect("text");
    assert_eq!(password(dsn, &[("HOME", folder)]).expect("file"), "a:b\\c:d");
    let both = [("HOME", folder), ("PGPASSWORD", "env")];
    assert_eq!(password(dsn, &both).expect("the variable first"), "env");
    assert_eq!(password("postgres://x@y/z", &[("HOME", folder)]).expect("stars"), "last");
    let file = home_of_files.path().join(".pgpass");
    let named = [("PGPASSFILE", file.to_str().expect("text"))];
    assert_eq!(password(dsn, &named).expect("a named file"), "a:b\\c:d");
}

#[test]
fn sockets_are_localhost_or_their_folder() {
    let text = "localhost:5432:me:me:default\n/srv/pg:5433:*:me:own\n";
    let home = home(".pgpass", text, 0o600);
    let variables = [("HOME", home.path().to_str().expect("text"))];
    let of = |dsn: &str| password(dsn, &variables).expect(dsn);
    assert_eq!(of("postgres://me@/?host=/var/run/postgresql"), "default");
    assert_eq!(of("postgres://me@/app?host=/srv/pg&port=5433"), "own");
    assert_eq!(of("postgres://me@/app?host=/srv/pg"), "");
}

#[test]
fn an_option_file_of_mysql_has_the_password_in_its_client_group() {
    let text = "[mysqldump]\npassword=no\n[client]\n; password=no\nuser = you\n\
                password = \"a#b\\\\c\\sd\" \n[mysql]\npassword=no\n";
    let home = home(".my.cnf", text, 0o600);
    let folder = home.path().to_str().expect("text");
    let dsn = "mysql://me@db/app";
    let both = [("HOME", folder), ("MYSQL_PWD", "env")];
    assert_eq!(password(dsn, &both).expect("file"), "a#b\\c d");
    assert_eq!(password(dsn, &[("MYSQL_PWD", "env")]).expect("variable"), "env");
    assert_eq!(password("mariadb://me@db/app", &both[..1]).expect("file"), "a#b\\c d");
}

#[test]
fn a_file_that_others_read_is_not_used() {
    let home = home(".pgpass", "*:*:*:*:secret\n", 0o644);
    let variables = [("HOME", home.path().to_str().expect("text"))];
    let known = completed("postgres://me@db/app", &variables).expect("no error");
    let file = home.path().join(".pgpass");
    assert!(known.notes[0].starts_with(&format!("{} is not used", file.display())));
    assert_eq!(known.dsn.login.password, "");
}

#[test]
fn a_dsn_may_name_a_variable() {
    let dsn = "postgres://me:${DB_SECRET}@db/app";
    assert_eq!(password(dsn, &[("DB_SECRET", "s")]).expect("set"), "s");
    let error = password(dsn, &[("PGPASSWORD", "p")]).expect_err("not set").to_string();
    assert!(error.contains("DB_SECRET"), "{error}");
}

#[test]
fn a_service_has_host_user_and_password() {
    let text = "[prod]\nhost=db\nuser=me\npassword=s\nsslmode=require\napplication_name=x\n";
    let home = home(".pg_service.conf", text, 0o644);
    let folder = [("HOME", home.path().to_str().expect("text"))];
    let prod = completed("postgres:///app?service=prod", &folder).expect("a service");
    assert_eq!(prod.dsn.to_string(), "postgres://me@db:5432/app?sslmode=require");
    assert_eq!((prod.dsn.login.password.as_str(), prod.is_visible), ("s", false));
    assert_eq!(prod.notes, ["rqps ignores application_name of the service"]);
    let named = [folder[0], ("PGSERVICE", "prod"), ("PGPASSWORD", "p")];
    let own = completed("postgres://you@db2?service", &named).expect("by PGSERVICE");
    assert_eq!(own.dsn.to_string(), "postgres://you@db2:5432/?sslmode=require");
    let error = |dsn, variables| completed(dsn, variables).err().expect("refused").to_string();
    let missing = error("postgres://?service=test", &folder);
    assert!(missing.contains("service test not found; looked in /"), "{missing}");
    let unnamed = error("postgres://?service", &folder);
    assert!(unnamed.contains("from PGSERVICE, which is not set"), "{unnamed}");
}

/// A login-path file as mysql_config_editor writes it, encrypted by openssl. Twenty zero bytes give
/// a key of 16 zeros.
fn login_file(lines: &[&str]) -> Option<Vec<u8>> {
    use std::io::Write;
    use std::process::{Command, Stdio};
    let mut file = vec![0; 24];
    for line in lines {
        let key = "0".repeat(32);
        let mut openssl = Command::new("openssl")
            .args(["enc", "-aes-128-ecb", "-K", &key])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .ok()?;
        openssl.stdin.take()?.write_all(line.as_bytes()).expect("a line");
        let encrypted = openssl.wait_with_output().expect("openssl").stdout;
        file.extend((encrypted.len() as u32).to_le_bytes());
        file.extend(encrypted);
    }
    Some(file)
}

#[test]
fn a_login_path_has_host_user_and_password() {
    let lines = [
        "[client]\n", "user = me\n", "password = \"of client\"\n", "[prod]\n", "user = you\n",
        "password = \"a#b\"\n", "host = db\n", "port = 3307\n",
    ];
    let Some(bytes) = login_file(&lines) else { return };
    let home = home(".my.cnf", "[client]\npassword=cnf\n", 0o600);
    let file = home.path().join("paths");
    fs::write(&file, bytes).expect("write");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).expect("chmod");
    let (folder, file) = (home.path().to_str().expect("text"), file.to_str().expect("text"));
    let variables = [("HOME", folder), ("MYSQL_TEST_LOGIN_FILE", file)];
    let prod = completed("mysql:///app?login-path=prod", &variables).expect("a path");
    assert_eq!(prod.dsn.to_string(), "mysql://you@db:3307/app");
    assert_eq!(prod.dsn.login.password, "a#b");
    assert_eq!(password("mysql://me@h", &variables).expect("the client's"), "of client");
    assert_eq!(password("mysql://other@h", &variables).expect("another user"), "cnf");
    let error = completed("mysql://?login-path=test", &variables).err().expect("none").to_string();
    assert!(error.contains("mysql_config_editor set --login-path=test"), "{error}");
    fs::set_permissions(file, fs::Permissions::from_mode(0o644)).expect("chmod");
    let error = completed("mysql://?login-path=prod", &variables).err().expect("open").to_string();
    assert!(
        error.starts_with("use the login path prod: ") && error.contains("chmod 600"),
        "{error}"
    );
}
