-- Statements of the transactions by number. Above each its name and the types of its placeholders
-- (`i` whole number, `t` text). `{lock}` locks the read rows if the dialect can.

-- the customer of a new order: iiii
SELECT c_discount, c_last, c_credit, w_tax FROM customer, warehouse WHERE w_id = ? AND c_w_id = ?
AND c_d_id = ? AND c_id = ?

-- the number of a new order: ii
SELECT d_next_o_id, d_tax FROM district WHERE d_w_id = ? AND d_id = ?{lock}

-- the next number: ii
UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = ? AND d_id = ?

-- an order: iiiiii
INSERT INTO orders (o_w_id, o_d_id, o_id, o_c_id, o_entry_d, o_carrier_id, o_ol_cnt, o_all_local)
VALUES (?, ?, ?, ?, CURRENT_TIMESTAMP, NULL, ?, ?)

-- a new order: iii
INSERT INTO new_order (no_w_id, no_d_id, no_o_id) VALUES (?, ?, ?)

-- an item: i
SELECT i_price, i_name, i_data FROM item WHERE i_id = ?

-- less in stock: iiiii
UPDATE stock SET s_quantity = ?, s_ytd = s_ytd + ?, s_order_cnt = s_order_cnt + 1, s_remote_cnt =
s_remote_cnt + ? WHERE s_w_id = ? AND s_i_id = ?

-- an order line: iiiiiiitt
INSERT INTO order_line (ol_w_id, ol_d_id, ol_o_id, ol_number, ol_i_id, ol_supply_w_id,
ol_delivery_d, ol_quantity, ol_amount, ol_dist_info) VALUES (?, ?, ?, ?, ?, ?, NULL, ?, ?, ?)

-- the year of a warehouse: ii
UPDATE warehouse SET w_ytd = w_ytd + ? WHERE w_id = ?

-- a warehouse: i
SELECT w_name, w_street_1, w_street_2, w_city, w_state, w_zip FROM warehouse WHERE w_id = ?

-- the year of a district: iii
UPDATE district SET d_ytd = d_ytd + ? WHERE d_w_id = ? AND d_id = ?

-- a district: ii
SELECT d_name, d_street_1, d_street_2, d_city, d_state, d_zip FROM district WHERE d_w_id = ? AND
d_id = ?

-- customers of a name: iit
SELECT c_id FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_last = ? ORDER BY c_first

-- a customer who pays: iii
SELECT c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state, c_zip, c_phone,
c_since, c_credit_lim, c_discount, c_balance, c_credit, c_data FROM customer WHERE c_w_id = ? AND
c_d_id = ? AND c_id = ?{lock}

-- a payment: iiiii
UPDATE customer SET c_balance = c_balance - ?, c_ytd_payment = c_ytd_payment + ?, c_payment_cnt =
c_payment_cnt + 1 WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?

-- a payment of bad credit: iitiii
UPDATE customer SET c_balance = c_balance - ?, c_ytd_payment = c_ytd_payment + ?, c_payment_cnt =
c_payment_cnt + 1, c_data = ? WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?

-- history: iiiiiit
INSERT INTO history (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, h_data) VALUES
(?, ?, ?, ?, ?, CURRENT_TIMESTAMP, ?, ?)

-- the oldest new order: ii
SELECT no_o_id FROM new_order WHERE no_w_id = ? AND no_d_id = ? ORDER BY no_o_id LIMIT 1{lock}

-- no new order any more: iii
DELETE FROM new_order WHERE no_w_id = ? AND no_d_id = ? AND no_o_id = ?

-- the carrier of an order: iiii
UPDATE orders SET o_carrier_id = ? WHERE o_w_id = ? AND o_d_id = ? AND o_id = ?

-- the customer of an order: iii
SELECT o_c_id FROM orders WHERE o_w_id = ? AND o_d_id = ? AND o_id = ?

-- delivery of lines: iii
UPDATE order_line SET ol_delivery_d = CURRENT_TIMESTAMP WHERE ol_w_id = ? AND ol_d_id = ? AND
ol_o_id = ?

-- the worth of an order: iii
SELECT SUM(ol_amount) FROM order_line WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?

-- a delivery: tiii
UPDATE customer SET c_balance = c_balance + ?, c_delivery_cnt = c_delivery_cnt + 1 WHERE c_w_id =
? AND c_d_id = ? AND c_id = ?

-- low stock: iiiiii
SELECT COUNT(DISTINCT s_i_id) FROM order_line, stock WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id
< ? AND ol_o_id >= ? AND s_w_id = ? AND s_i_id = ol_i_id AND s_quantity < ?

-- the last order of a customer: iii
SELECT o_id, o_carrier_id, o_entry_d FROM orders WHERE o_w_id = ? AND o_d_id = ? AND o_c_id = ?
ORDER BY o_id DESC LIMIT 1

-- the lines of an order: iii
SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d FROM order_line WHERE
ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?

-- the next number to look back from: ii
SELECT d_next_o_id FROM district WHERE d_w_id = ? AND d_id = ?

-- a customer: iii
SELECT c_first, c_middle, c_last, c_balance FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_id
= ?
