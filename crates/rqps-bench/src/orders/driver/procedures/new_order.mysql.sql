(w INT, d INT, c INT, is_local INT, items TEXT, supplies TEXT, quantities TEXT)
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
END
