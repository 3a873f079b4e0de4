//! Tests of valid and invalid DSNs.

use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed};

use super::*;
use rqps_model::build::Dbms;
use rqps_model::endpoint::{
    Address, ChannelBinding, ClientIdentity, Consent, Login, ServerKey, Tls, TlsMode,
};

#[test]
fn what_is_left_out_of_an_address_is_known() {
    let check = |text: &str, found: &[&str]| assert_eq!(secrets(text), found, "{text}");
    check("x://h?access_token=s%20t", &["s%20t", "s t"]);
    check("sqlserver://h;user=a;Password=s;b=c", &["s", "s"]);
    check("redis://me:a%2Fb@h:1/0", &["a%2Fb", "a/b"]);
    check("redis://:s3cret@127.0.0.1:7001", &["s3cret", "s3cret"]);
    check("x://h/db?passwd=s3cret&user=me", &["s3cret", "s3cret"]);
    check("redis://127.0.0.1:7001", &[]);
    check("postgres://me:${SECRET}@h/db", &[]);
    check("/home/me/duckdb-1.4.4", &[]);
    assert_eq!(encoded("a/b c"), "a%2Fb%20c");
}

#[test]
fn a_dsn_is_stored_without_its_password() {
    let check = |dsn: &str, stored: &str| assert_eq!(without_password(dsn), stored);
    // Addresses of programs of the user's.
    check("x://h/d?a=1&pwd=s&b=2", "x://h/d?a=1&b=2");
    check("mongodb://h/?tls=true&tlsCertificateKeyFilePassword=s", "mongodb://h/?tls=true");
    check("x://h?access_token=s", "x://h");
    check("sqlserver://h:1433;user=a;Password=s", "sqlserver://h");
    check("sqlserver://h;user=a;Password=s;b=c", "sqlserver://h;user=a;b=c");
    check("x://h?a=1;secret_key=s;b=2", "x://h?a=1;b=2");
    check("postgres://me:${SECRET}@host/db", "postgres://me:${SECRET}@host/db");
    check("postgres://me:${SEC RET}@host/db", "postgres://me@host/db");
    check("postgres://me:x${SECRET}@host/db", "postgres://me@host/db");
    check("postgres://me:secret@db:5432/app", "postgres://me@db:5432/app");
    check("postgres://me@db/app", "postgres://me@db/app");
    check("mysql://db:3306/app", "mysql://db:3306/app");
    check("mysql://me:p@ss/w:ord@db/app", "mysql://me@db/app");
    check("postgres:///app?host=/tmp&password=x&user=me", "postgres:///app?host=/tmp&user=me");
    check("postgres:///app?password=x", "postgres:///app");
    check("mysql://me:@db", "mysql://me@db");
    check("mysql://db:/app", "mysql://db:/app");
    check("postgres://u:se?cret@h/db", "postgres://u@h/db");
    check("postgres://u@x:se?c@ret?@h/db?user=a@b", "postgres://u@x@h/db?user=a@b");
    check(
        "postgres://h/db?user=me@zone&sslmode=disable",
        "postgres://h/db?user=me@zone&sslmode=disable",
    );
    check("postgres://h/db?password=p@q&sslmode=disable", "postgres://h/db?sslmode=disable");
    // Here the host is missing.
    check("postgres://bench:s3cret/app", "postgres://bench");
    check("postgres://bench:s3/cret?sslmode=require", "postgres://bench?sslmode=require");
}

fn shown(text: &str) -> String {
    match Dsn::parse(text) {
        Ok(dsn) => {
            let Login { user, password, database } = &dsn.login;
            format!("{} {} {user} {password} {database}", dsn.dbms, dsn.address)
        }
        Err(error) => error.to_string(),
    }
}

fn check(text: &str, expected: &str) {
    assert_eq!(shown(text), expected, "{text}");
}

#[test]
fn reads_all_forms() {
    check("postgres://u:p@h:6000/d", "postgres h:6000 u p d");
    check("postgresql://u@h", "postgres h:5432 u  ");
    check("cockroachdb://root@h/d", "postgres h:26257 root  d");
    check("yugabyte://u@h", "postgres h:5433 u  ");
    check("yugabytedb://u@h:7/d", "postgres h:7 u  d");
    check("tidb://u@h", "mysql h:4000 u  ");
    check(
        "mongodb://u@h",
        "the DSN begins with 'mongodb' instead of postgres://, postgresql://, mysql:// or mariadb://",
    );
    check("postgres://u:p%40%2F%3a@h/d%20e", "postgres h:5432 u p@/: d e");
    check("postgres://u:p@q@h/d", "postgres h:5432 u p@q d");
    check("postgres://u@[::1]:7/d", "postgres ::1:7 u  d");
    check("postgres://u@[::1]/d", "postgres ::1:5432 u  d");
    check("postgres://u@/d?host=/run/pg", "postgres /run/pg/.s.PGSQL.5432 u  d");
    check("postgres://u@:7/d?host=/run/pg", "postgres /run/pg/.s.PGSQL.7 u  d");
    check("postgres:///d?user=u&host=/r&port=8", "postgres /r/.s.PGSQL.8 u  d");
    check("postgres://u@%2Frun%2Fpg/d", "postgres /run/pg/.s.PGSQL.5432 u  d");
    check("postgres://u@/d?host=/r/.s.PGSQL.9", "postgres /r/.s.PGSQL.9 u  d");
    check("postgres://h?user=u&password=%25&dbname=d", "postgres h:5432 u % d");
    check("mysql://u:p@h/d", "mysql h:3306 u p d");
    check("postgres://u:p?q@h/d?port=7", "postgres h:7 u p?q d");
    check("postgres://h/d?user=u@zone", "postgres h:5432 u@zone  d");
    check("mysql://u@/d?socket=/tmp/my%20sock", "mysql /tmp/my sock u  d");
    check("mariadb://u:+@h:1/", "mariadb h:1 u + ");
    check("mysql://u@h/?ssl-mode=DISABLED", "mysql h:3306 u  ");
}

#[test]
fn names_the_bad_part() {
    check(
        "oracle://u@h",
        "the DSN begins with 'oracle' instead of postgres://, postgresql://, mysql:// or \
         mariadb://",
    );
    check(
        "user:secret@host",
        "the DSN begins with 'user' instead of postgres://, postgresql://, mysql:// or \
         mariadb://",
    );
    check("mysql://h/d", "the DSN names no user: write mysql://USER@…");
    check(
        "mysql://u@/d",
        "the DSN names no host: write mysql://user@HOST/database, or \
         mysql://user@/database?socket=/PATH",
    );
    check(
        "mysql://u:50%@h",
        "the password of the DSN has invalid percent-encoding: write a literal % as %25",
    );
    check("mysql://u:%+1@h", &DsnError::Encoding("password").to_string());
    check("mysql://u%ff@h", &DsnError::Encoding("user").to_string());
    check("mysql://u@h:0", "the port '0' of the DSN is not a number from 1 to 65535");
    check(
        "postgres://u@::1/d",
        "the host '::1' of the DSN has more than one colon; write an IPv6 address as [::1]",
    );
    check("postgres://u@a,b/d", "the host 'a,b' of the DSN names several servers; a DSN names one");
    check("postgres://u@[::1/d", "the host '[::1' of the DSN has no closing ]");
    check(
        "postgres://u@[::1]7/d",
        "the host '[::1]7' of the DSN has something other than a port after ]",
    );
    check(
        "mysql://u@h?host=a",
        "unknown DSN option 'host'; valid options: socket, login-path, ssl-mode, ssl-ca, \
         ssl-cert, ssl-key (or sslmode, sslrootcert, sslcert, sslkey), get-server-public-key, \
         server-public-key-path, enable-cleartext-plugin",
    );
    check("mysql://u@%2Ftmp", "the host '/tmp' of the DSN is a path: write ?socket=/path");
    check("mysql://u@/?socket=tmp", "the DSN's option socket=tmp is not an absolute path");
}

#[test]
fn no_fault_holds_a_password() {
    let check = |text: &str, begin: &str| {
        let fault = shown(text);
        assert!(fault.starts_with(begin) && !fault.contains("s3cret"), "{text}: {fault}");
    };
    check("postgres://bench:s3cret/app", "the port of the DSN is not a number from 1 to 65535; a");
    check("postgres://bench:s3cret?x=1", "the port of the DSN is not a number");
    check("postgres://bench:123456/app", "the port of the DSN is not a number");
    check("postgres://bench:a:s3cret/app", "the host 'bench:…' of the DSN has more than one colon");
    check("postgres://bench:s3cret,a/app", "the host 'bench:…' of the DSN names several servers");
    check("postgres://u:a@b/s3cret@h/db", "the database of the DSN holds an @: write it as %40");
    check("postgres://h?x%s3cret", "unknown DSN option 'x'; valid options");
}

#[test]
fn tls_is_said_or_refused() {
    check(
        "postgres://u@h?sslmode=sure",
        "the DSN's option sslmode=sure is not one of disable, allow, prefer, require, verify-ca, \
         verify-full",
    );
    check(
        "mysql://u@h?ssl-mode=allow",
        "the DSN's option ssl-mode=allow is not one of DISABLED, PREFERRED, REQUIRED, VERIFY_CA, \
         VERIFY_IDENTITY",
    );
    check(
        "postgres://u@h?sslrootcert=/a",
        "the DSN's option sslrootcert=/a has no use without sslmode=verify-ca or verify-full",
    );
    check(
        "postgres://u@h?sslcert=/a",
        "the DSN's option sslcert=/a needs sslkey=FILE, its private key",
    );
    check(
        "postgres://u@h?sslkey=/a&sslcert=/b&sslmode=disable",
        "the DSN's option sslcert=/b has no use with sslmode=disable",
    );
    check(
        "postgres://u@h?channel_binding=yes",
        "the DSN's option channel_binding=yes is not one of disable, prefer, require",
    );
    check(
        "postgres://u@/?host=/r&sslmode=require",
        "the DSN's option sslmode=require has no use on a unix socket, which is local",
    );
    for option in ["sslcert=/a&sslkey=/b", "channel_binding=require"] {
        let first = option.split('&').next().unwrap_or_default();
        check(
            &format!("postgres://u@/?host=/r&{option}"),
            &format!("the DSN's option {first} has no use on a unix socket, which is local"),
        );
    }
    let roots = "needs sslrootcert=FILE: a certificate of any public authority would do, for any \
                 host; those of the system go with verify-full";
    check(
        "postgres://u@h?sslmode=verify-ca&sslrootcert=system",
        &format!("the DSN's option sslmode=verify-ca {roots}"),
    );
    let roots = "needs ssl-ca=FILE: a certificate of any public authority would do, for any host; \
                 those of the system go with VERIFY_IDENTITY";
    check(
        "mysql://u@h?ssl-mode=VERIFY_CA",
        &format!("the DSN's option ssl-mode=VERIFY_CA {roots}"),
    );
    check("postgres://u@/?host=/r&sslmode=prefer", "postgres /r/.s.PGSQL.5432 u  ");
}

#[test]
fn modes_of_tls_are_those_of_both_clients() {
    let tls = |dsn: &str| match Dsn::parse(dsn).expect(dsn).address {
        Address::Tcp { tls, .. } => tls,
        Address::Unix(path) => panic!("{dsn} is {}", path.display()),
    };
    assert_eq!(tls("postgres://u@h"), Tls::of(TlsMode::Prefer));
    assert_eq!(tls("postgres://u@h?sslmode=allow"), Tls::of(TlsMode::Allow));
    assert_eq!(tls("postgres://u@h?sslmode=require"), Tls::of(TlsMode::Require));
    let system = "postgres://u@h?sslmode=verify-full&sslrootcert=system";
    assert_eq!(tls(system), Tls::of(TlsMode::VerifyFull));
    let with_roots = |mode| Tls { roots: Some("/ca".into()), ..Tls::of(mode) };
    assert_eq!(tls("mysql://u@h?ssl-mode=VERIFY_CA&ssl-ca=/ca"), with_roots(TlsMode::VerifyCa));
    assert_eq!(tls("mysql://u@h?ssl-mode=PREFERRED"), Tls::of(TlsMode::Prefer));
    let all = "mysql://u@h?ssl-mode=VERIFY_IDENTITY&ssl-ca=/ca&ssl-cert=/c&ssl-key=/k";
    let identity = ClientIdentity { certificate: "/c".into(), key: "/k".into() };
    let wanted =
        Tls { roots: Some("/ca".into()), identity: Some(identity), ..Tls::of(TlsMode::VerifyFull) };
    assert_eq!(tls(all), wanted);
    let bound = tls("postgres://u@h?sslmode=require&channel_binding=require");
    assert_eq!(bound.binding, ChannelBinding::Require);
}

#[test]
fn what_a_login_may_send_is_an_option() {
    let check = |dsn: &str, fits: &dyn Fn(&Consent) -> bool| match Dsn::parse(dsn).expect(dsn) {
        Dsn { address: Address::Tcp { tls, .. }, .. } => assert!(fits(&tls.consent), "{dsn}"),
        other => panic!("{other}"),
    };
    check("mysql://u@h", &|it| *it == Consent::default());
    check("mysql://u@h?get-server-public-key=1", &|it| it.key == ServerKey::Asked);
    check("mysql://u@h?get-server-public-key=false", &|it| it.key == ServerKey::Refused);
    let both = "mysql://u@h?server-public-key-path=/k&get-server-public-key=true";
    check(both, &|it| it.key == ServerKey::File("/k".into()));
    check("mysql://u@h?enable-cleartext-plugin", &|it| it.clear);
    let allows = |it: &Consent, word: &str| it.methods.as_ref().is_some_and(|it| it.allows(word));
    check("postgres://u@h?require_auth=scram-sha-256,none", &|it| {
        allows(it, "none") && allows(it, "scram-sha-256") && !allows(it, "md5")
    });
    check("postgres://u@h?require_auth=!password,!md5", &|it| {
        allows(it, "none") && !allows(it, "md5") && !allows(it, "password")
    });
    for dsn in [
        "postgres://u@h/?require_auth=!md5",
        "mysql://u@h/?get-server-public-key=true&enable-cleartext-plugin=true",
    ] {
        let shown = Dsn::parse(dsn).expect(dsn).to_string();
        let options = dsn.split_once('?').map_or("", |(_, options)| options);
        assert!(shown.ends_with(options), "{shown}");
    }
    for dsn in [
        "postgres://u@h?require_auth=md5,!password",
        "postgres://u@h?require_auth=trust",
        "postgres://u@h?get-server-public-key=1",
        "mysql://u@h?require_auth=md5",
        "mysql://u@h?enable-cleartext-plugin=maybe",
        "mysql://u@/d?socket=/s&get-server-public-key=1",
    ] {
        assert!(Dsn::parse(dsn).is_err(), "{dsn}");
    }
}

#[test]
fn a_service_has_what_the_dsn_leaves_out() {
    let pair = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
    let service = [("host", "db"), ("user", "u"), ("port", "7"), ("sslmode", "require")].map(pair);
    let with = |text: &str| Dsn::parse_with(text, &service).expect(text).to_string();
    assert_eq!(with("postgres://?service=s"), "postgres://u@db:7/?sslmode=require");
    assert_eq!(
        with("postgres://me@other/d?service=s&sslmode=disable"),
        "postgres://me@other:7/d?sslmode=disable"
    );
    assert_eq!(Dsn::parse("postgres://?service=s").expect("a name").service.as_deref(), Some("s"));
    // The host differs from that of the login path, so its socket does not apply.
    let path = [("socket", "/run/my.sock"), ("user", "u"), ("port", "7")].map(pair);
    let with = |text: &str| Dsn::parse_with(text, &path).expect(text).to_string();
    assert_eq!(with("mysql:///d?login-path=p"), "mysql://u@/d?socket=/run/my.sock");
    assert_eq!(with("mysql://db/d?login-path=p"), "mysql://u@db:7/d");
    // The service names the authorities.
    let with_roots = "postgres://?service=s&sslmode=verify-ca";
    assert!(Dsn::parse(with_roots).is_ok());
    let roots = [("host", "db"), ("user", "u"), ("sslrootcert", "/ca")].map(pair);
    assert!(Dsn::parse_with(with_roots, &roots).is_ok());
    let error = Dsn::parse_with("postgres://?service=s", &[]).expect_err("no user").to_string();
    assert!(error.contains("names no user"), "{error}");
}

#[test]
fn shows_no_password() {
    let hidden = |text: &str| Dsn::parse(text).unwrap().to_string();
    assert_eq!(hidden("postgres://u:secret@h/d"), "postgres://u@h:5432/d");
    assert_eq!(hidden("postgresql://h/d?user=u&password=x"), "postgres://u@h:5432/d");
    assert_eq!(
        hidden("postgres://u@/d?host=/run/pg&password=x"),
        "postgres://u@/d?host=/run/pg/.s.PGSQL.5432"
    );
    assert_eq!(hidden("mariadb://u%40:x@[::1]/d"), "mariadb://u%40@[::1]:3306/d");
    assert_eq!(hidden("mysql://u:x@/d?socket=/s"), "mysql://u@/d?socket=/s");
    let debug = format!("{:?}", Dsn::parse("mysql://u:secret@h/d").unwrap());
    assert!(!debug.contains("secret"), "{debug}");
}

#[test]
fn looks() {
    assert!(Dsn::looks_like("mysql://"));
    assert!(!Dsn::looks_like("mysql@8.0.33"));
    assert!(!Dsn::looks_like("postgres=/usr/lib/postgresql/15"));
    assert!(!Dsn::looks_like("https://example.org"));
}

proptest! {
    #![proptest_config(Config { rng_seed: RngSeed::Fixed(1), ..Config::default() })]

    #[test]
    fn never_panics(text in "(postgres|mysql)://[a%0-9:@/?&=\\[\\]é,]{0,40}") {
        let _ = Dsn::parse(&text);
    }

    #[test]
    fn what_is_shown_means_the_same(
        user in "\\PC{1,8}", database in "\\PC{0,8}", host in "[a-z.-]{1,9}",
        path in "/[^/\0]{1,8}", port in 1u16.., form in 0..5, mode in 0..6usize, bound: bool,
    ) {
        let modes = [
            TlsMode::Off, TlsMode::Allow, TlsMode::Prefer, TlsMode::Require, TlsMode::VerifyCa,
            TlsMode::VerifyFull,
        ];
        let mut tls = Tls::of(modes[mode]);
        if tls.mode.verifies() {
            tls.roots = Some(path.clone().into());
        }
        if form == 0 && bound {
            tls.binding = ChannelBinding::Require;
        }
        if form != 0 && tls.mode == TlsMode::Allow {
            tls.mode = TlsMode::Prefer;
        }
        let (dbms, address) = match form {
            0 => (Dbms::Postgres, Address::Tcp { host, port, tls }),
            1 => (Dbms::Mariadb, Address::Tcp { host: "::1".into(), port, tls }),
            2 => (Dbms::Mysql, Address::Tcp { host, port, tls }),
            3 => (Dbms::Mysql, Address::Unix(path.into())),
            _ => (Dbms::Postgres, Address::Unix(format!("{path}/.s.PGSQL.{port}").into())),
        };
        let login = Login { user, password: String::new(), database };
        let dsn = Dsn { dbms, address, login, password_variable: None, service: None };
        prop_assert_eq!(Dsn::parse(&dsn.to_string()), Ok(dsn));
    }
}
