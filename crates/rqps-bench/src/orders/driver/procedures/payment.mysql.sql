(w INT, d INT, cw INT, cd INT, c INT, last VARCHAR(16), amount INT)
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
END
