//! Three small applications: a rental shop, a trader and a music store, each with the statements
//! that its program sends. `{small}` is a small number that the server gives, `{serial}` a larger
//! one, `{time}` a time, `{kind}` an enumeration, `{json}` a document.

use rqps_model::build::Dbms;

/// An application.
pub(crate) struct Application {
    pub(crate) name: &'static str,
    /// Statements that make its tables.
    schema: &'static [&'static str],
    /// In the order in which they can be dropped.
    pub(crate) tables: &'static [&'static str],
    rows: fn() -> Vec<String>,
    /// Statements for both, with values in the places of `?`.
    both: &'static [(&'static str, &'static [&'static str])],
    postgres: &'static [(&'static str, &'static [&'static str])],
    mysql: &'static [(&'static str, &'static [&'static str])],
}

impl Application {
    pub(crate) fn made(&self, dbms: Dbms) -> Vec<String> {
        let is_mysql = dbms != Dbms::Postgres;
        let choose = |mysql: &'static str, postgres| if is_mysql { mysql } else { postgres };
        let spelled = |sql: &&str| {
            sql.replace("{small}", choose("TINYINT UNSIGNED AUTO_INCREMENT", "SMALLSERIAL"))
                .replace(
                    "{serial}",
                    choose("INT AUTO_INCREMENT", "INT GENERATED ALWAYS AS IDENTITY"),
                )
                .replace("{time}", choose("DATETIME", "TIMESTAMP"))
                .replace("{json}", choose("JSON", "JSONB"))
                .replace("{kind}", choose("ENUM ('G', 'PG', 'R')", "rating"))
        };
        let own = if is_mysql {
            Vec::new()
        } else {
            vec![
                "DROP TYPE IF EXISTS rating".to_owned(),
                "CREATE TYPE rating AS ENUM ('G', 'PG', 'R')".to_owned(),
            ]
        };
        let rows = (self.rows)().into_iter().map(|sql| {
            if is_mysql { sql } else { sql.replace(" VALUES ", " OVERRIDING SYSTEM VALUE VALUES ") }
        });
        own.into_iter().chain(self.schema.iter().map(spelled)).chain(rows).collect()
    }

    pub(crate) fn statements(
        &self,
        dbms: Dbms,
    ) -> impl Iterator<Item = &'static (&'static str, &'static [&'static str])> {
        self.both.iter().chain(match dbms {
            Dbms::Postgres => self.postgres,
            _ => self.mysql,
        })
    }
}

pub(crate) const ALL: [Application; 3] = [
    Application {
        name: "rental",
        schema: &[
            "CREATE TABLE language (language_id {small} PRIMARY KEY, name CHAR(20) NOT NULL)",
            "CREATE TABLE actor (actor_id INT PRIMARY KEY, first_name VARCHAR(45) NOT NULL, \
             last_name VARCHAR(45) NOT NULL)",
            "CREATE TABLE film (film_id INT PRIMARY KEY, title VARCHAR(60) NOT NULL, language_id \
             SMALLINT NOT NULL, length SMALLINT NOT NULL, rate DECIMAL(4, 2) NOT NULL, rating \
             {kind} NOT NULL, taxed DECIMAL(6, 2) GENERATED ALWAYS AS (rate * 1.2) STORED)",
            "CREATE TABLE film_actor (actor_id INT NOT NULL, film_id INT NOT NULL, \
             PRIMARY KEY (actor_id, film_id), FOREIGN KEY (actor_id) REFERENCES actor (actor_id), \
             FOREIGN KEY (film_id) REFERENCES film (film_id))",
            "CREATE TABLE rental (rental_id {serial} PRIMARY KEY, rental_date {time} NOT NULL, \
             film_id INT NOT NULL, customer_id INT NOT NULL, return_date {time}, \
             UNIQUE (rental_date, film_id, customer_id), CHECK (return_date >= rental_date), \
             FOREIGN KEY (film_id) REFERENCES film (film_id))",
        ],
        tables: &["rental", "film_actor", "film", "actor", "language"],
        rows: || {
            vec![
                list("language (language_id, name)", 6, |i| format!("({i}, 'tongue {i}')")),
                list("actor (actor_id, first_name, last_name)", 200, |i| {
                    format!("({i}, 'FIRST{i}', 'LAST{}')", i % 50)
                }),
                list("film (film_id, title, language_id, length, rate, rating)", 300, |i| {
                    let rating = ["G", "PG", "R"][i % 3];
                    format!(
                        "({}, 'title {i} of', {}, {}, 4.9, '{rating}')",
                        7 * i,
                        1 + i % 6,
                        40 + i
                    )
                }),
                list("film_actor (actor_id, film_id)", 600, |i| {
                    format!("({}, {})", 1 + i % 200, 7 * (1 + i % 300))
                }),
                list("rental (rental_date, film_id, customer_id, return_date)", 800, |i| {
                    let (month, day) = (1 + i % 12, 1 + i % 28);
                    let from = format!("2024-{month:02}-{day:02} 10:00:00");
                    let to = format!("2025-{month:02}-01");
                    format!("('{from}', {}, {i}, '{to} 00:00:00')", 7 * (1 + i % 300))
                }),
            ]
        },
        both: &[
            ("INSERT INTO language (name) VALUES (?)", &["'Latin'"]),
            ("DELETE FROM film_actor WHERE actor_id = ? AND film_id = ?", &["1", "999999"]),
            (
                "SELECT * FROM film_actor WHERE (actor_id, film_id) IN ((?, ?), (?, ?))",
                &["1", "7", "2", "14"],
            ),
            ("SELECT film_id FROM film WHERE title LIKE ? AND length > ?", &["'title 1%'", "50"]),
            (
                "UPDATE film SET length = length + ?, rating = ? WHERE film_id = ?",
                &["30", "'PG'", "14"],
            ),
            (
                "INSERT INTO rental (rental_date, film_id, customer_id, return_date) \
                 VALUES (?, ?, ?, ?)",
                &["'2024-05-05 10:00:00'", "14", "900", "'2024-05-06 10:00:00'"],
            ),
            (
                "SELECT COUNT(*), SUM(rate) FROM film WHERE rating = ? HAVING COUNT(*) > ?",
                &["'G'", "2"],
            ),
            (
                "UPDATE rental SET return_date = ? WHERE rental_id = ?",
                &["'2025-05-05 10:00:00'", "5"],
            ),
        ],
        postgres: &[
            (
                "SELECT date_trunc(?, rental_date), count(*) FROM rental WHERE rental_date >= date \
                 ? AND rental_date < date ? + interval ? GROUP BY date_trunc('month', rental_date)",
                &["'month'", "'2024-01-01'", "'2024-01-01'", "'1 month'"],
            ),
            // Without casts the server takes the numbers for texts.
            (
                "SELECT sum(CASE WHEN length > ? THEN ? ELSE ? END), ? AS one FROM film WHERE \
                 rating = ANY (?::rating[]) OR rating <> ?::rating",
                &["60", "1", "0", "1", "'{G}'", "'R'"],
            ),
            (
                "SELECT v.label, f.title FROM (VALUES (?, ?), (?, ?)) AS v (id, label) JOIN film f \
                 ON f.film_id = v.id",
                &["7", "'a'", "14", "'b'"],
            ),
            (
                "SELECT make_date(?, ?, ?), tsrange(?, ?), d::date FROM generate_series(?::date, ?::date, \
                 ?::interval) d, film TABLESAMPLE SYSTEM (?)",
                &[
                    "2024", "1", "1", "'2024-01-01'", "'2025-01-01'", "'2024-01-01'",
                    "'2024-01-04'", "'1 day'", "10",
                ],
            ),
            (
                "UPDATE film SET rate = rate * ?, title = title || ? WHERE film_id = ?",
                &["1.1", "'!'", "14"],
            ),
            (
                "SELECT extract(? from rental_date), count(*) FROM rental WHERE film_id = ANY (?) \
                 AND extract(? from rental_date) = ? GROUP BY extract(month from rental_date)",
                &["month", "'{7,14}'", "year", "2024"],
            ),
        ],
        mysql: &[
            (
                "SELECT DATE_FORMAT(rental_date, ?) AS m, COUNT(DISTINCT film_id) FROM rental \
                 WHERE rental_date BETWEEN DATE ? AND ? GROUP BY m LIMIT ?, ?",
                &["'%Y-%m'", "'2024-02-01'", "'2024-03-01'", "0", "5"],
            ),
            (
                "UPDATE film SET rate = rate * ?, title = CONCAT(title, ?), length = ROUND(length * \
                 ?) WHERE film_id = ?",
                &["1.1", "'!'", "1.1", "14"],
            ),
            (
                "SELECT EXTRACT(YEAR FROM rental_date), IF(film_id > ?, ?, ?) FROM rental WHERE \
                 rental_date > ? - INTERVAL ? DAY AND film_id IN (?, ?, ?)",
                &["50", "'new'", "'old'", "'2024-06-01'", "200", "7", "14", "21"],
            ),
        ],
    },
    Application {
        name: "trader",
        schema: &[
            "CREATE TABLE customers (customer_id CHAR(5) PRIMARY KEY, company VARCHAR(40) NOT \
             NULL, country VARCHAR(15), data {json})",
            "CREATE TABLE products (product_id SMALLINT PRIMARY KEY, name VARCHAR(40) NOT NULL, \
             price DECIMAL(6, 2) NOT NULL, stock SMALLINT NOT NULL, CHECK (stock >= 0))",
            "CREATE TABLE orders (order_id INT PRIMARY KEY, customer_id CHAR(5) NOT NULL, ordered \
             DATE NOT NULL, freight DECIMAL(8, 2), FOREIGN KEY (customer_id) REFERENCES customers \
             (customer_id))",
            "CREATE TABLE order_details (order_id INT NOT NULL, product_id SMALLINT NOT NULL, \
             quantity SMALLINT NOT NULL, discount DECIMAL(3, 2) NOT NULL, PRIMARY KEY (order_id, \
             product_id), FOREIGN KEY (order_id) REFERENCES orders (order_id), FOREIGN KEY \
             (product_id) REFERENCES products (product_id))",
        ],
        tables: &["order_details", "orders", "products", "customers"],
        rows: || {
            vec![
                list("customers (customer_id, company, country, data)", 90, |i| {
                    let country = ["Norway", "Peru", "Italy"][i % 3];
                    format!("('C{i:04}', 'Company {i}', '{country}', '{{\"vip\": \"{}\"}}')", i % 2)
                }),
                list("products (product_id, name, price, stock)", 77, |i| {
                    format!("({i}, 'product {i}', {i}.5, {})", i % 4)
                }),
                list("orders (order_id, customer_id, ordered, freight)", 500, |i| {
                    let (month, day) = (1 + i % 12, 1 + i % 28);
                    let of = 1 + i % 90;
                    format!("({i}, 'C{of:04}', '2024-{month:02}-{day:02}', {i}.25)")
                }),
                list("order_details (order_id, product_id, quantity, discount)", 1500, |i| {
                    format!("({}, {}, 3, 0.1)", 1 + i % 500, 1 + i % 77)
                }),
            ]
        },
        both: &[
            ("DELETE FROM order_details WHERE order_id = ? AND product_id = ?", &["1", "999"]),
            (
                "UPDATE products SET stock = stock - ? WHERE product_id = ? AND stock >= ?",
                &["1", "7", "1"],
            ),
            (
                "INSERT INTO order_details (order_id, product_id, quantity, discount) \
                 VALUES (?, ?, ?, ?)",
                &["1", "3", "2", "0.2"],
            ),
            (
                "INSERT INTO customers (customer_id, company, country) VALUES (?, ?, ?)",
                &["'ZZZZZ'", "'Zed'", "'Peru'"],
            ),
            (
                "INSERT INTO products (product_id, name, price, stock) VALUES (?, ?, ?, ?), (?, ?, \
                 ?, ?)",
                &["900", "'a'", "2.5", "4", "901", "'b'", "3.5", "4"],
            ),
            (
                "SELECT c.company, SUM(d.quantity * p.price * (? - d.discount)) FROM customers c \
                 JOIN orders o ON o.customer_id = c.customer_id JOIN order_details d ON d.order_id \
                 = o.order_id JOIN products p ON p.product_id = d.product_id WHERE c.country = ? \
                 AND o.ordered BETWEEN ? AND ? GROUP BY c.company",
                &["1", "'Norway'", "'2024-01-01'", "'2024-06-01'"],
            ),
            (
                "SELECT order_id FROM orders WHERE (ordered, order_id) > (?, ?) LIMIT ?",
                &["'2024-06-01'", "5", "10"],
            ),
            ("DELETE FROM orders WHERE order_id = ?", &["99999"]),
        ],
        postgres: &[
            (
                "SELECT order_id, ordered + ? FROM orders WHERE ordered > current_date - ? OR \
                 ordered BETWEEN ?::date AND ?::date + ?",
                &["7", "30", "'2024-03-01'", "'2024-03-01'", "7"],
            ),
            (
                "WITH RECURSIVE r AS (SELECT ? AS n UNION ALL SELECT n + ? FROM r WHERE n < ?) \
                 SELECT r.n, o.freight FROM r JOIN orders o ON o.order_id = r.n",
                &["1", "1", "10"],
            ),
            (
                "SELECT company FROM customers WHERE data ->> ? IS NOT NULL AND country ILIKE ?",
                &["'vip'", "'%r%'"],
            ),
            (
                "SELECT count(*) FROM orders WHERE ordered > timestamp ? AND freight > ?::numeric",
                &["'2024-03-01'", "20"],
            ),
        ],
        mysql: &[(
            "SELECT company, data->? FROM customers WHERE data->>? = ? AND country LIKE ? LIMIT ?",
            &["'$.vip'", "'$.vip'", "'1'", "'%r%'", "5"],
        )],
    },
    Application {
        name: "music",
        schema: &[
            "CREATE TABLE artist (artist_id {small} PRIMARY KEY, name VARCHAR(120))",
            "CREATE TABLE album (album_id INT PRIMARY KEY, title VARCHAR(160) NOT NULL, artist_id \
             SMALLINT NOT NULL)",
            "CREATE TABLE track (track_id {serial} PRIMARY KEY, name VARCHAR(200) NOT NULL, \
             album_id INT, milliseconds INT NOT NULL, unit_price NUMERIC(10, 2) NOT NULL, plays \
             SMALLINT NOT NULL)",
            "CREATE TABLE playlist_track (playlist_id INT NOT NULL, track_id INT NOT NULL, added \
             DATE NOT NULL, PRIMARY KEY (playlist_id, track_id))",
        ],
        tables: &["playlist_track", "track", "album", "artist"],
        rows: || {
            vec![
                list("artist (artist_id, name)", 100, |i| format!("({i}, 'Artist {i}')")),
                list("album (album_id, title, artist_id)", 300, |i| {
                    format!("({i}, 'Album {i}', {})", 1 + i % 100)
                }),
                list("track (name, album_id, milliseconds, unit_price, plays)", 2000, |i| {
                    format!(
                        "('Track {i}', {}, {}, {}.99, {})",
                        1 + i % 300,
                        1000 + i,
                        i % 5,
                        32000 + i % 9
                    )
                }),
                list("playlist_track (playlist_id, track_id, added)", 3000, |i| {
                    format!("({}, {i}, '2024-01-01')", 1 + i % 18)
                }),
            ]
        },
        both: &[
            ("UPDATE track SET plays = plays + ? WHERE track_id = ?", &["1", "17"]),
            ("INSERT INTO playlist_track VALUES (?, ?, ?)", &["1", "100000", "'2024-05-05'"]),
            ("INSERT INTO artist (name) VALUES (?), (?)", &["'one'", "'two'"]),
            ("DELETE FROM playlist_track WHERE (playlist_id, track_id) = (?, ?)", &["1", "99999"]),
            (
                "SELECT t.name FROM track t JOIN album b ON b.album_id = t.album_id JOIN artist a \
                 ON a.artist_id = b.artist_id WHERE a.name = ? AND t.milliseconds >= ? AND \
                 t.milliseconds < ? ORDER BY t.name LIMIT ?",
                &["'Artist 5'", "1500", "2500", "10"],
            ),
            (
                "SELECT CASE WHEN milliseconds > ? THEN ? ELSE ? END AS kind, COUNT(*) FROM track \
                 WHERE album_id IN (?, ?) AND COALESCE(unit_price, ?) < ? GROUP BY 1",
                &["1500", "'long'", "'short'", "4", "5", "0", "2"],
            ),
        ],
        postgres: &[(
            "INSERT INTO playlist_track (playlist_id, track_id, added) VALUES (?, ?, ?) \
             ON CONFLICT (playlist_id, track_id) DO UPDATE SET added = ?",
            &["1", "5", "'2024-05-05'", "'2024-05-05'"],
        )],
        mysql: &[
            (
                "SELECT GROUP_CONCAT(name ORDER BY name SEPARATOR ?), ROUND(AVG(unit_price), ?) \
                 FROM track WHERE album_id = ?",
                &["', '", "2", "9"],
            ),
            ("REPLACE INTO playlist_track VALUES (?, ?, ?)", &["1", "5", "'2024-05-05'"]),
        ],
    },
];

/// An INSERT of so many rows.
fn list(table: &str, count: usize, row: impl Fn(usize) -> String) -> String {
    let rows: Vec<String> = (1..=count).map(row).collect();
    format!("INSERT INTO {table} VALUES {}", rows.join(", "))
}
