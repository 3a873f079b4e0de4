(w INT, d INT, c INT, is_local INT, items INT[], supplies INT[], quantities INT[])
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
END $$
