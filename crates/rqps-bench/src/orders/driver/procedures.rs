//! The five transactions as stored functions of Postgres and stored procedures of MySQL.

use crate::orders::schema::PROCEDURES;
use rqps_model::dialect::Dialect;

/// SQLSTATE raised by the function of a new order for an item that does not exist.
pub(super) const UNSOLD: &str = "ORD01";

/// A transaction as a stored function of Postgres and a stored procedure of MySQL.
pub(super) struct Stored {
    pub(super) name: &'static str,
    /// Types of the call's placeholders: `i` whole number, `t` text.
    pub(super) types: &'static str,
    postgres: &'static str,
    mysql: &'static str,
}

impl Stored {
    /// The statements that create it.
    fn create(&self, dialect: Dialect) -> Vec<String> {
        let name = self.name;
        match dialect {
            Dialect::Mysql => vec![
                format!("DROP PROCEDURE IF EXISTS {name}"),
                format!("CREATE PROCEDURE {name} {}", self.mysql),
            ],
            _ => vec![format!("CREATE OR REPLACE FUNCTION {name} {}", self.postgres)],
        }
    }

    /// The statement that calls it, with `?` for each parameter.
    pub(super) fn call(&self, dialect: Dialect) -> String {
        let marks = vec!["?"; self.types.len()].join(", ");
        match dialect {
            Dialect::Mysql => format!("CALL {}({marks})", self.name),
            _ => format!("SELECT * FROM {}({marks})", self.name),
        }
    }
}

/// The statements that create all procedures.
pub(super) fn create(dialect: Dialect) -> Vec<String> {
    STORED.iter().flat_map(|stored| stored.create(dialect)).collect()
}

/// All procedures, in the order of transaction kinds.
pub(super) const STORED: [Stored; 5] = [NEW_ORDER, PAYMENT, DELIVERY, STOCK_LEVEL, ORDER_STATUS];

/// The items, their supplying warehouses and their quantities are parameters, each a list.
const NEW_ORDER: Stored = Stored {
    name: PROCEDURES[0],
    types: "iiiittt",
    postgres: "(w INT, d INT, c INT, is_local INT, items INT[], supplies INT[], quantities INT[])
RETURNS TABLE (sold INT, total NUMERIC) LANGUAGE plpgsql AS $$
DECLARE
  rebate NUMERIC; warehouse_tax NUMERIC; district_tax NUMERIC; price NUMERIC; amount NUMERIC;
  number INT; wanted INT; about TEXT;
BEGIN
  total := 0;
  sold := array_length(items, 1);
  SELECT c_discount, w_tax INTO rebate, warehouse_tax FROM customer, warehouse
   WHERE w_id = w AND c_w_id = w AND c_d_id = d AND c_id = c;
  UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = w AND d_id = d
   RETURNING d_next_o_id - 1, d_tax INTO number, district_tax;
  INSERT INTO orders (o_w_id, o_d_id, o_id, o_c_id, o_entry_d, o_carrier_id, o_ol_cnt, o_all_local)
   VALUES (w, d, number, c, CURRENT_TIMESTAMP, NULL, sold, is_local);
  INSERT INTO new_order (no_w_id, no_d_id, no_o_id) VALUES (w, d, number);
  FOR line IN 1..sold LOOP
    SELECT i_price INTO price FROM item WHERE i_id = items[line];
    IF NOT FOUND THEN
      RAISE EXCEPTION USING ERRCODE = 'ORD01', MESSAGE = 'nobody sells item ' || items[line];
    END IF;
    wanted := quantities[line];
    UPDATE stock SET s_quantity = s_quantity - wanted
        + CASE WHEN s_quantity - wanted >= 10 THEN 0 ELSE 91 END,
      s_ytd = s_ytd + wanted, s_order_cnt = s_order_cnt + 1,
      s_remote_cnt = s_remote_cnt + CASE WHEN supplies[line] = w THEN 0 ELSE 1 END
     WHERE s_w_id = supplies[line] AND s_i_id = items[line]
     RETURNING CASE d WHEN 1 THEN s_dist_01 WHEN 2 THEN s_dist_02 WHEN 3 THEN s_dist_03
       WHEN 4 THEN s_dist_04 WHEN 5 THEN s_dist_05 WHEN 6 THEN s_dist_06 WHEN 7 THEN s_dist_07
       WHEN 8 THEN s_dist_08 WHEN 9 THEN s_dist_09 ELSE s_dist_10 END INTO about;
    amount := wanted * price;
    total := total + amount;
    INSERT INTO order_line (ol_w_id, ol_d_id, ol_o_id, ol_number, ol_i_id, ol_supply_w_id,
      ol_delivery_d, ol_quantity, ol_amount, ol_dist_info)
     VALUES (w, d, number, line, items[line], supplies[line], NULL, wanted, amount, about);
  END LOOP;
  total := total * (1 - rebate) * (1 + warehouse_tax + district_tax);
  RETURN NEXT;
END $$",
    mysql: "(w INT, d INT, c INT, is_local INT, items TEXT, supplies TEXT, quantities TEXT)
BEGIN
  DECLARE rebate, warehouse_tax, district_tax, price, amount DECIMAL(12,4);
  DECLARE total DECIMAL(20,4) DEFAULT 0;
  DECLARE number, line, item_no, supply, wanted INT;
  DECLARE sold INT DEFAULT 1 + LENGTH(items) - LENGTH(REPLACE(items, ',', ''));
  DECLARE about CHAR(24);
  START TRANSACTION;
  SELECT c_discount, w_tax INTO rebate, warehouse_tax FROM customer, warehouse
   WHERE w_id = w AND c_w_id = w AND c_d_id = d AND c_id = c;
  SELECT d_next_o_id, d_tax INTO number, district_tax FROM district
   WHERE d_w_id = w AND d_id = d FOR UPDATE;
  UPDATE district SET d_next_o_id = number + 1 WHERE d_w_id = w AND d_id = d;
  INSERT INTO orders (o_w_id, o_d_id, o_id, o_c_id, o_entry_d, o_carrier_id, o_ol_cnt, o_all_local)
   VALUES (w, d, number, c, CURRENT_TIMESTAMP, NULL, sold, is_local);
  INSERT INTO new_order (no_w_id, no_d_id, no_o_id) VALUES (w, d, number);
  SET line = 1;
  WHILE line <= sold DO
    SET item_no = SUBSTRING_INDEX(SUBSTRING_INDEX(items, ',', line), ',', -1);
    SET supply = SUBSTRING_INDEX(SUBSTRING_INDEX(supplies, ',', line), ',', -1);
    SET wanted = SUBSTRING_INDEX(SUBSTRING_INDEX(quantities, ',', line), ',', -1);
    SET price = NULL;
    SELECT i_price INTO price FROM item WHERE i_id = item_no;
    IF price IS NULL THEN
      SET sold = 0;
    ELSE
      SELECT CASE d WHEN 1 THEN s_dist_01 WHEN 2 THEN s_dist_02 WHEN 3 THEN s_dist_03
         WHEN 4 THEN s_dist_04 WHEN 5 THEN s_dist_05 WHEN 6 THEN s_dist_06 WHEN 7 THEN s_dist_07
         WHEN 8 THEN s_dist_08 WHEN 9 THEN s_dist_09 ELSE s_dist_10 END INTO about FROM stock
       WHERE s_w_id = supply AND s_i_id = item_no FOR UPDATE;
      UPDATE stock SET s_quantity = s_quantity - wanted
          + CASE WHEN s_quantity - wanted >= 10 THEN 0 ELSE 91 END,
        s_ytd = s_ytd + wanted, s_order_cnt = s_order_cnt + 1,
        s_remote_cnt = s_remote_cnt + CASE WHEN supply = w THEN 0 ELSE 1 END
       WHERE s_w_id = supply AND s_i_id = item_no;
      SET amount = wanted * price;
      SET total = total + amount;
      INSERT INTO order_line (ol_w_id, ol_d_id, ol_o_id, ol_number, ol_i_id, ol_supply_w_id,
        ol_delivery_d, ol_quantity, ol_amount, ol_dist_info)
       VALUES (w, d, number, line, item_no, supply, NULL, wanted, amount, about);
    END IF;
    SET line = line + 1;
  END WHILE;
  IF sold > 0 THEN COMMIT; ELSE ROLLBACK; END IF;
  SELECT sold, total * (1 - rebate) * (1 + warehouse_tax + district_tax) AS total;
END",
};

/// Parameter `c` is 0 if the customer is selected by name.
const PAYMENT: Stored = Stored {
    name: PROCEDURES[1],
    types: "iiiiiti",
    postgres: "(w INT, d INT, cw INT, cd INT, c INT, last TEXT, amount INT)
RETURNS TABLE (payer INT, balance NUMERIC) LANGUAGE plpgsql AS $$
DECLARE
  warehouse_name TEXT; district_name TEXT; named BIGINT;
BEGIN
  UPDATE warehouse SET w_ytd = w_ytd + amount WHERE w_id = w RETURNING w_name INTO warehouse_name;
  UPDATE district SET d_ytd = d_ytd + amount WHERE d_w_id = w AND d_id = d
   RETURNING d_name INTO district_name;
  payer := c;
  IF c = 0 THEN
    SELECT count(*) INTO named FROM customer WHERE c_w_id = cw AND c_d_id = cd AND c_last = last;
    SELECT c_id INTO STRICT payer FROM customer WHERE c_w_id = cw AND c_d_id = cd AND c_last = last
     ORDER BY c_first OFFSET (named - 1) / 2 LIMIT 1;
  END IF;
  UPDATE customer SET c_balance = c_balance - amount, c_ytd_payment = c_ytd_payment + amount,
    c_payment_cnt = c_payment_cnt + 1,
    c_data = CASE c_credit WHEN 'BC' THEN left(
      concat_ws(' ', payer, cd, cw, d, w, amount || '.00', '| ') || c_data, 500) ELSE c_data END
   WHERE c_w_id = cw AND c_d_id = cd AND c_id = payer RETURNING c_balance INTO STRICT balance;
  INSERT INTO history (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, h_data)
   VALUES (payer, cd, cw, d, w, CURRENT_TIMESTAMP, amount,
     left(warehouse_name, 10) || '    ' || left(district_name, 10));
  RETURN NEXT;
END $$",
    mysql: "(w INT, d INT, cw INT, cd INT, c INT, last VARCHAR(16), amount INT)
BEGIN
  DECLARE warehouse_name, district_name VARCHAR(10);
  DECLARE payer, named INT;
  DECLARE paid_balance DECIMAL(12,2);
  START TRANSACTION;
  UPDATE warehouse SET w_ytd = w_ytd + amount WHERE w_id = w;
  SELECT w_name INTO warehouse_name FROM warehouse WHERE w_id = w;
  UPDATE district SET d_ytd = d_ytd + amount WHERE d_w_id = w AND d_id = d;
  SELECT d_name INTO district_name FROM district WHERE d_w_id = w AND d_id = d;
  SET payer = c;
  IF c = 0 THEN
    SELECT count(*) INTO named FROM customer WHERE c_w_id = cw AND c_d_id = cd AND c_last = last;
    SET named = (named - 1) DIV 2;
    SELECT c_id INTO payer FROM customer WHERE c_w_id = cw AND c_d_id = cd AND c_last = last
     ORDER BY c_first LIMIT named, 1;
  END IF;
  UPDATE customer SET c_balance = c_balance - amount, c_ytd_payment = c_ytd_payment + amount,
    c_payment_cnt = c_payment_cnt + 1,
    c_data = CASE c_credit WHEN 'BC' THEN left(concat(
      concat_ws(' ', payer, cd, cw, d, w, concat(amount, '.00'), '| '), c_data), 500)
      ELSE c_data END
   WHERE c_w_id = cw AND c_d_id = cd AND c_id = payer;
  SELECT c_balance INTO paid_balance FROM customer
   WHERE c_w_id = cw AND c_d_id = cd AND c_id = payer;
  INSERT INTO history (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, h_data)
   VALUES (payer, cd, cw, d, w, CURRENT_TIMESTAMP, amount,
     concat(warehouse_name, '    ', district_name));
  COMMIT;
  SELECT payer, paid_balance AS balance;
END",
};

const DELIVERY: Stored = Stored {
    name: PROCEDURES[2],
    types: "ii",
    postgres: "(w INT, carrier INT) RETURNS TABLE (delivered INT) LANGUAGE plpgsql AS $$
DECLARE
  number INT; receiver INT; worth NUMERIC;
BEGIN
  delivered := 0;
  FOR d IN 1..10 LOOP
    SELECT no_o_id INTO number FROM new_order WHERE no_w_id = w AND no_d_id = d
     ORDER BY no_o_id LIMIT 1 FOR UPDATE;
    CONTINUE WHEN NOT FOUND;
    DELETE FROM new_order WHERE no_w_id = w AND no_d_id = d AND no_o_id = number;
    UPDATE orders SET o_carrier_id = carrier WHERE o_w_id = w AND o_d_id = d AND o_id = number
     RETURNING o_c_id INTO receiver;
    UPDATE order_line SET ol_delivery_d = CURRENT_TIMESTAMP
     WHERE ol_w_id = w AND ol_d_id = d AND ol_o_id = number;
    SELECT SUM(ol_amount) INTO worth FROM order_line
     WHERE ol_w_id = w AND ol_d_id = d AND ol_o_id = number;
    UPDATE customer SET c_balance = c_balance + worth, c_delivery_cnt = c_delivery_cnt + 1
     WHERE c_w_id = w AND c_d_id = d AND c_id = receiver;
    delivered := delivered + 1;
  END LOOP;
  RETURN NEXT;
END $$",
    mysql: "(w INT, carrier INT)
BEGIN
  DECLARE number, receiver INT;
  DECLARE d INT DEFAULT 1;
  DECLARE delivered INT DEFAULT 0;
  DECLARE worth DECIMAL(12,2);
  START TRANSACTION;
  WHILE d <= 10 DO
    SET number = NULL;
    SELECT no_o_id INTO number FROM new_order WHERE no_w_id = w AND no_d_id = d
     ORDER BY no_o_id LIMIT 1 FOR UPDATE;
    IF number IS NOT NULL THEN
      DELETE FROM new_order WHERE no_w_id = w AND no_d_id = d AND no_o_id = number;
      UPDATE orders SET o_carrier_id = carrier WHERE o_w_id = w AND o_d_id = d AND o_id = number;
      SELECT o_c_id INTO receiver FROM orders WHERE o_w_id = w AND o_d_id = d AND o_id = number;
      UPDATE order_line SET ol_delivery_d = CURRENT_TIMESTAMP
       WHERE ol_w_id = w AND ol_d_id = d AND ol_o_id = number;
      SELECT SUM(ol_amount) INTO worth FROM order_line
       WHERE ol_w_id = w AND ol_d_id = d AND ol_o_id = number;
      UPDATE customer SET c_balance = c_balance + worth, c_delivery_cnt = c_delivery_cnt + 1
       WHERE c_w_id = w AND c_d_id = d AND c_id = receiver;
      SET delivered = delivered + 1;
    END IF;
    SET d = d + 1;
  END WHILE;
  COMMIT;
  SELECT delivered;
END",
};

const STOCK_LEVEL: Stored = Stored {
    name: PROCEDURES[3],
    types: "iii",
    postgres: "(w INT, d INT, threshold INT)
RETURNS TABLE (low BIGINT) LANGUAGE plpgsql AS $$
DECLARE
  next_no INT;
BEGIN
  SELECT d_next_o_id INTO next_no FROM district WHERE d_w_id = w AND d_id = d;
  RETURN QUERY SELECT COUNT(DISTINCT s_i_id) FROM order_line, stock
   WHERE ol_w_id = w AND ol_d_id = d AND ol_o_id < next_no AND ol_o_id >= next_no - 20
     AND s_w_id = w AND s_i_id = ol_i_id AND s_quantity < threshold;
END $$",
    mysql: "(w INT, d INT, threshold INT)
BEGIN
  DECLARE next_no INT;
  START TRANSACTION;
  SELECT d_next_o_id INTO next_no FROM district WHERE d_w_id = w AND d_id = d;
  SELECT COUNT(DISTINCT s_i_id) AS low FROM order_line, stock
   WHERE ol_w_id = w AND ol_d_id = d AND ol_o_id < next_no AND ol_o_id >= next_no - 20
     AND s_w_id = w AND s_i_id = ol_i_id AND s_quantity < threshold;
  COMMIT;
END",
};

/// Returns the lines of the customer's last order, each with the customer's balance.
const ORDER_STATUS: Stored = Stored {
    name: PROCEDURES[4],
    types: "iiit",
    postgres: "(w INT, d INT, c INT, last TEXT)
RETURNS TABLE (balance NUMERIC, item INT, supply INT, quantity INT, amount NUMERIC,
  delivery TIMESTAMP) LANGUAGE plpgsql AS $$
DECLARE
  asker INT := c; named BIGINT; number INT; owed NUMERIC;
BEGIN
  IF c = 0 THEN
    SELECT count(*) INTO named FROM customer WHERE c_w_id = w AND c_d_id = d AND c_last = last;
    SELECT c_id INTO STRICT asker FROM customer WHERE c_w_id = w AND c_d_id = d AND c_last = last
     ORDER BY c_first OFFSET (named - 1) / 2 LIMIT 1;
  END IF;
  SELECT c_balance INTO STRICT owed FROM customer
   WHERE c_w_id = w AND c_d_id = d AND c_id = asker;
  SELECT o_id INTO number FROM orders WHERE o_w_id = w AND o_d_id = d AND o_c_id = asker
   ORDER BY o_id DESC LIMIT 1;
  RETURN QUERY SELECT owed, ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d
   FROM order_line WHERE ol_w_id = w AND ol_d_id = d AND ol_o_id = number;
END $$",
    mysql: "(w INT, d INT, c INT, last VARCHAR(16))
BEGIN
  DECLARE asker, named, number INT;
  DECLARE owed DECIMAL(12,2);
  START TRANSACTION;
  SET asker = c;
  IF c = 0 THEN
    SELECT count(*) INTO named FROM customer WHERE c_w_id = w AND c_d_id = d AND c_last = last;
    SET named = (named - 1) DIV 2;
    SELECT c_id INTO asker FROM customer WHERE c_w_id = w AND c_d_id = d AND c_last = last
     ORDER BY c_first LIMIT named, 1;
  END IF;
  SELECT c_balance INTO owed FROM customer WHERE c_w_id = w AND c_d_id = d AND c_id = asker;
  SELECT o_id INTO number FROM orders WHERE o_w_id = w AND o_d_id = d AND o_c_id = asker
   ORDER BY o_id DESC LIMIT 1;
  SELECT owed, ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d
   FROM order_line WHERE ol_w_id = w AND ol_d_id = d AND ol_o_id = number;
  COMMIT;
END",
};
