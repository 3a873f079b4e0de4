(w INT, d INT, c INT, last VARCHAR(16))
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
END
